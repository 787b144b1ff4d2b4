"""Every number the tool judges by, and what a project may change about them.

Shares are fractions of the step unless the name says otherwise. Each threshold carries its source,
so that a report can print why a line was drawn where it is.
"""

from __future__ import annotations

import difflib
import math
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from analyzer.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# What [tool.ceiling.kernels] may declare a device activity to be.
ACTIVITIES = ("communication", "compute", "copy", "fused", "optimizer")

_TABLES = ("fail_on", "kernels", "step_pattern", "thresholds", "warn_on")
_FIELD = "this tool's choice: "


def _threshold(default: float, source: str) -> float:
    """A dataclass field with its source; the type checker sees the number it holds."""
    spec: float = field(default=default, metadata={"source": source})
    return spec


@dataclass(frozen=True)
class Thresholds:
    """All thresholds, by the question they answer; names end in the unit."""

    # Which steps, which files
    thin_step_ratio: float = _threshold(
        0.8,
        _FIELD
        + "a step with fewer kernels than this part of the median is cut off or not recorded",
    )
    min_steps: int = field(
        default=5,
        metadata={
            "source": _FIELD + "fewer steps give no interval; below it none is left out last"
        },
    )
    separate_run_gap_ms: float = _threshold(
        1000.0, _FIELD + "more than host clocks of one cluster differ, less than a job restarts in"
    )

    separate_ranks_gap_ms: float = _threshold(
        60_000.0, _FIELD + "ranks of one run are profiled at the same step, so within a minute"
    )

    steps_agree_share: float = _threshold(
        0.10, _FIELD + "ranks of a synchronous run differ less than this in their mean step"
    )

    # Findings: share of the step from which on a class is one
    data_loading_share: float = _threshold(0.05, "TensorBoard PyTorch plugin, DataLoader over 5 %")
    data_hidden_share: float = _threshold(
        0.01, _FIELD + "exposed loading below 1 % of the step counts as hidden"
    )
    exposed_comm_share: float = _threshold(
        0.10, "TensorBoard PyTorch plugin, Communication over 10 %"
    )
    late_rank_share: float = _threshold(
        0.05, _FIELD + "waiting that ends with a fix on one rank is worth a line from 5 %"
    )
    launch_share: float = _threshold(
        0.10, _FIELD + "late launches, launch calls and launch latency together"
    )
    launch_depth1_share: float = _threshold(
        0.50, _FIELD + "part of idle time in gaps whose work was launched into an empty queue"
    )
    host_sync_share: float = _threshold(
        0.05, _FIELD + "a call that can be removed is worth a line from 5 %"
    )
    optimizer_share: float = _threshold(0.05, _FIELD + "worth sharding from 5 %")
    copy_share: float = _threshold(0.05, _FIELD + "worth pinning or overlapping from 5 %")
    unexplained_share: float = _threshold(
        0.10, _FIELD + "above this the report may miss the cause and says so"
    )
    compute_bound_share: float = _threshold(
        0.80, "POP methodology, an efficiency below 0.8 is worth attention"
    )
    fp32_matmul_share: float = _threshold(
        0.10, _FIELD + "part of compute time in matrix kernels without tensor cores"
    )
    tiny_kernel_us: float = _threshold(10.0, "TraceLens, short kernel below 10 us")
    tiny_kernel_share: float = _threshold(0.50, _FIELD + "part of kernels that are tiny")

    # Wording of a share: noise, minor, worth doing, first
    noise_share: float = _threshold(0.02, _FIELD + "below this a share is within noise")
    minor_share: float = _threshold(0.05, "traceml, below 5 % is noise or minor")
    first_share: float = _threshold(0.15, "TraceLens, idle over 15 %")

    # Why the device was idle
    python_gap_us: float = _threshold(
        500.0,
        _FIELD + "up to here a host thread without events is the interpreter between two operators",
    )
    dispatch_gap_us: float = _threshold(
        20.0, "GitM, short gap up to 20 us: the hardware switches between queued kernels"
    )
    longest_hold_us: float = _threshold(
        1000.0,
        _FIELD
        + "launch latency and stream waits end within this; 10 times HTA's outlier of 100 us",
    )

    # How far a replay can be trusted
    replay_fair_share: float = _threshold(
        0.05, "dPRO and Lumos, mean error of a replay below 5 % of the step"
    )
    replay_poor_share: float = _threshold(
        0.10, _FIELD + "a replay further off the recorded step is not used"
    )

    # Before and after
    equal_share: float = _threshold(
        0.02, _FIELD + "a step that differs by less is as long as it was; benchmarks drift by 1 %"
    )
    mixed_share: float = _threshold(
        0.05, _FIELD + "a class that moves against the step is worth a line from 5 % of it"
    )

    # How far the recording itself can be trusted
    profiler_overhead_share: float = _threshold(
        0.05, _FIELD + "part of the step spent in the profiler's own work"
    )

    def as_dict(self) -> dict[str, float]:
        """Name -> value, in the order above."""
        return asdict(self)

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Name -> where the default comes from, in the order above."""
        return {f.name: f.metadata["source"] for f in fields(cls)}


DEFAULT_THRESHOLDS = Thresholds()


@dataclass(frozen=True)
class Settings:
    """What one analysis runs with; `kernels` maps an activity to regular expressions of names,
    `fail_on` and `warn_on` hold gates.
    """

    thresholds: Thresholds = DEFAULT_THRESHOLDS
    kernels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    step_pattern: str | None = None
    fail_on: tuple[str, ...] = ()
    warn_on: tuple[str, ...] = ()


def load_settings(path: Path | None, start: Path) -> Settings:
    """The settings in `path`, else of the nearest pyproject.toml with [tool.ceiling] above `start`.

    `start` itself is looked at first. Defaults when there is none. UsageError names the key, the
    file and the nearest valid key.
    """
    if path is not None:
        table = _tool_table(path)
        if table is None:
            raise UsageError(
                f"{path.name} has no [tool.ceiling] table", "Add one, or name another."
            )
        return _settings(table, path.name)
    for folder in (start.absolute(), *start.absolute().parents):
        candidate = folder / "pyproject.toml"
        if candidate.is_file() and (table := _tool_table(candidate)) is not None:
            return _settings(table, candidate.name)
    return Settings()


def _tool_table(path: Path) -> dict[str, Any] | None:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path.name} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{path.name} is not valid TOML: {error}") from error
    tool = document.get("tool", {})
    table = tool.get("ceiling") if isinstance(tool, dict) else None
    return None if table is None else _table(table, "tool.ceiling", path.name)


def _settings(table: dict[str, Any], file: str) -> Settings:
    _only(table, _TABLES, "tool.ceiling", file)
    pattern = table.get("step_pattern")
    if pattern is not None:
        pattern = _regex(pattern, "step_pattern", file)
    return Settings(
        thresholds=_thresholds(_table(table.get("thresholds", {}), "thresholds", file), file),
        kernels=_kernels(_table(table.get("kernels", {}), "kernels", file), file),
        step_pattern=pattern,
        fail_on=_gates(table, "fail_on", file),
        warn_on=_gates(table, "warn_on", file),
    )


def _gates(table: Mapping[str, Any], key: str, file: str) -> tuple[str, ...]:
    gates = table.get(key, [])
    if not isinstance(gates, list) or not all(isinstance(gate, str) for gate in gates):
        raise UsageError(f"{file}: {key} must be a list of gates as text, not {gates!r}")
    return tuple(gates)


def _thresholds(table: dict[str, Any], file: str) -> Thresholds:
    defaults = DEFAULT_THRESHOLDS.as_dict()
    _only(table, defaults, "thresholds", file)
    return Thresholds(
        **{key: _number(value, key, file, defaults[key]) for key, value in table.items()}
    )


def _number(value: Any, key: str, file: str, default: float) -> Any:
    """The value in the default's type; shares and ratios lie from 0 to 1, the rest from 0 up."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise UsageError(f"{file}: thresholds.{key} must be a number, not {value!r}")
    if isinstance(default, int) and not isinstance(value, int):
        raise UsageError(f"{file}: thresholds.{key} must be a whole number, not {value!r}")
    if value < 0 or (key.endswith(("_share", "_ratio")) and value > 1):
        limits = "from 0 to 1" if key.endswith(("_share", "_ratio")) else "0 or more"
        raise UsageError(f"{file}: thresholds.{key} must be {limits}, not {value!r}")
    return type(default)(value)


def _kernels(table: dict[str, Any], file: str) -> Mapping[str, tuple[str, ...]]:
    _only(table, ACTIVITIES, "kernels", file)
    for key, patterns in table.items():
        if not isinstance(patterns, list):
            raise UsageError(f"{file}: kernels.{key} must be a list of patterns, not {patterns!r}")
    return {
        key: tuple(_regex(pattern, f"kernels.{key}", file) for pattern in patterns)
        for key, patterns in table.items()
    }


def _regex(value: Any, key: str, file: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{file}: {key} must hold a regular expression as text, not {value!r}")
    try:
        re.compile(value)
    except re.error as error:
        raise UsageError(
            f"{file}: {key} holds {value!r}, no regular expression: {error}"
        ) from error
    return value


def _table(value: Any, name: str, file: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{file}: {name} must be a table, not {value!r}")
    return value


def _only(table: Mapping[str, Any], known: Iterable[str], name: str, file: str) -> None:
    """Raises UsageError for the first key that is not known, with the nearest one that is."""
    valid = list(known)
    for key in table:
        if key not in valid:
            near = difflib.get_close_matches(key, valid, n=1, cutoff=0.4)
            hint = f"Did you mean {near[0]}?" if near else f"Valid keys: {', '.join(valid)}."
            raise UsageError(f"{file}: unknown key {key} in [{name}]", hint)
