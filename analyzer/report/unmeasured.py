"""What stands in the report where the traces cannot tell: no number, and the reason."""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.ranks.unknown import WORK_LOST
from analyzer.report import document as doc
from analyzer.report.together import SPLIT
from analyzer.scaling.serial import SerialFraction


def no_scaling(serial: SerialFraction, today: float | None, because: str) -> doc.Scaling:
    """Nothing but the question, where work that was not recorded may be any part of the step."""
    none = doc.Estimate(value=None, reason=WORK_LOST)
    return doc.Scaling(
        mode=serial.mode,
        n=serial.n,
        f=none,
        s=none,
        P=None,
        ceiling_today=none,
        ceiling_one_gpu=none,
        speedup=None,
        efficiency=None,
        gustafson=None,
        roles=dict(serial.roles),
        assumptions=[because],
        predict=[],
        duration=None
        if today is None
        else doc.Duration(today_s=today, ceiling_s=None, reason=WORK_LOST),
        reason=WORK_LOST,
    )


def reasons(unsplit: str, unmeasured: Mapping[str, str]) -> str:
    """Why classes are null: the reason where there is one, else by class."""
    by_reason: dict[str, list[str]] = {}
    for name in SPLIT if unsplit else ():
        by_reason.setdefault(unmeasured.get(name, unsplit), []).append(name)
    for name, why in unmeasured.items():
        if name not in by_reason.setdefault(why, []):
            by_reason[why].append(name)
    if len(by_reason) < 2:
        return next(iter(by_reason), "")
    return "; ".join(f"{', '.join(names)}: {why}" for why, names in by_reason.items())
