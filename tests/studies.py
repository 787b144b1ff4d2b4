"""Replays with literal results: what each edit gains of a step of 100 ms, and how it varies."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from analyzer.whatif.study import CURVE_POINTS, Gain, Study, Together, Turn, faster

STEP_NS = 1e8
# Around its mean; five steps of it have an interval of 1.2416 to either side.
_VARYING = np.array([1.0, -1.0, 0.0, 1.0, -1.0])


def gain(
    share: float,
    *,
    varying: float = 0.0,
    classes: Mapping[str, float] | None = None,
    steps: int = 5,
) -> Gain:
    """A gain of this share of the step, by `varying` more or less in single steps.

    `classes` are the ms of the step that is left; all of it computes unless said otherwise.
    """
    left = {"compute": 100.0 * (1.0 - share)} if classes is None else classes
    return Gain(
        base=np.full(steps, STEP_NS),
        edited=STEP_NS * (1.0 - share - varying * _VARYING[:steps]),
        classes={name: ms * 1e6 for name, ms in left.items()},
        curve=[(part, faster(part * share)) for part in CURVE_POINTS],
    )


def studied(
    gains: Mapping[str, Gain | float] | None = None,
    *,
    error: float = 0.0,
    refused: Mapping[str, str] | None = None,
    turns: list[Turn] | None = None,
    together: Together | None = None,
) -> Study:
    """A study of these gains; a number is a share that goes in every step alike."""
    return Study(
        error=error,
        class_error=error,
        reason="",
        gains={n: g if isinstance(g, Gain) else gain(g) for n, g in (gains or {}).items()},
        refused=dict(refused or {}),
        turns=turns or [],
        together=together,
    )
