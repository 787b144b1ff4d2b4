"""May two runs be compared? What has to be the same, and what is only worth a warning.

Rules are data: each reads one fact of a report as text; facts that differ and are known on both
sides are told, with what the difference does to a comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analyzer.report.comparison import Differs
from analyzer.report.document import Collective, Report

# Kernel times by name that overlap by less than this are hardly the same program.
SAME_PROGRAM = 0.5
# Matrix operators that have the same sizes on both sides to this part are of the same batch.
SAME_SHAPES = 0.9
# Counts and bytes nearer to each other than this part are the same.
SAME_AMOUNT = 0.02
LONGEST = 200


@dataclass(frozen=True)
class Rule:
    """One fact that should be the same on both sides; None where the trace does not say."""

    id: str
    title: str
    blocking: bool
    fact: Callable[[Report], str | None]
    why: str


def _size(report: Report) -> str:
    return str(report.run.world_size or len(report.run.ranks_present))


def _ranks(report: Report) -> str:
    return ", ".join(map(str, report.run.ranks_present))


def _flags(report: Report) -> str | None:
    flags = report.run.flags
    known = {
        "stacks": flags.with_stack,
        "memory": flags.profile_memory,
        "shapes": flags.record_shapes,
    }
    if all(value is None for value in known.values()):
        return None
    return ", ".join(name for name, on in known.items() if on) or "none"


def _strategy(report: Report) -> str | None:
    return ", ".join(report.run.strategy) or None


RULES = (
    Rule(
        "world-size",
        "ranks of the job",
        True,
        _size,
        "each rank has another part of the work; to compare sizes fit them (ceiling scaling)",
    ),
    Rule(
        "timeline",
        "timeline",
        True,
        lambda report: report.breakdown.timeline,
        "steps of the device and steps of the host are cut by different marks",
    ),
    Rule(
        "step-rule",
        "how steps were found",
        True,
        lambda report: report.steps.rule,
        "a step is not the same stretch of work",
    ),
    Rule(
        "ranks-present",
        "ranks recorded",
        False,
        _ranks,
        "ranks differ in what they do, and the sides show different ones",
    ),
    Rule(
        "gpu",
        "GPU",
        False,
        lambda report: report.run.gpu,
        "the difference is of the hardware as much as of the change",
    ),
    Rule(
        "backend",
        "communication backend",
        False,
        lambda report: report.run.backend,
        "collectives take another time on another backend",
    ),
    Rule(
        "torch",
        "PyTorch",
        False,
        lambda report: report.run.torch,
        "versions differ in kernels and in host overhead",
    ),
    Rule(
        "flags",
        "profiler flags",
        False,
        _flags,
        "stacks, shapes and memory make host calls longer, so idle time can be the recording's",
    ),
    Rule(
        "strategy",
        "parallelism",
        False,
        _strategy,
        "the work is split otherwise, so classes can move into each other",
    ),
)


def differences(before: Report, after: Report) -> list[Differs]:
    """What is not the same in the two runs, blocking differences first."""
    found = []
    for rule in RULES:
        old, new = rule.fact(before), rule.fact(after)
        if old is not None and new is not None and old != new:
            found.append(_differs(rule.id, rule.title, old, new, rule.why, rule.blocking))
    more = (_exchanged(before, after), _shapes(before, after), _program(before, after))
    found += [row for row in more if row]
    return sorted(found, key=lambda row: not row.blocking)


def inside(runs: Sequence[Report]) -> list[Differs]:
    """What is not the same in the runs of one side, each against the first."""
    rows = [row for run in runs[1:] for row in differences(runs[0], run)]
    return list({row.id: row for row in rows}.values())


def _differs(id: str, title: str, old: str, new: str, why: str, blocking: bool = False) -> Differs:
    return Differs(
        id=id,
        title=title,
        before=old[:LONGEST],
        after=new[:LONGEST],
        blocking=blocking,
        why=why,
    )


def _exchanged(before: Report, after: Report) -> Differs | None:
    """The collective fingerprint: kinds, sizes of groups, numbers and bytes per step."""
    old, new = _traffic(before.collectives), _traffic(after.collectives)
    if not old or not new or _alike(old, new):
        return None
    return _differs(
        "collectives",
        "what is exchanged per step",
        _told(old),
        _told(new),
        "the model, the batch or the buckets are others; so may be the work of a step",
    )


def _traffic(rows: Sequence[Collective]) -> dict[str, tuple[float, float]]:
    """Number and bytes per step by kind and size of the group; bytes 0 where unknown."""
    found: dict[str, tuple[float, float]] = {}
    for row in rows:
        size = "" if row.group_size is None else f" of {row.group_size}"
        name = row.kind.replace("_", "-") + size
        count, amount = found.get(name, (0.0, 0.0))
        found[name] = (count + row.count, amount + row.count * (row.bytes or 0.0))
    return dict(sorted(found.items()))


def _alike(old: dict[str, tuple[float, float]], new: dict[str, tuple[float, float]]) -> bool:
    if old.keys() != new.keys():
        return False
    pairs = ((a, b) for name in old for a, b in zip(old[name], new[name], strict=True))
    return all(abs(a - b) <= SAME_AMOUNT * max(a, b) for a, b in pairs)


def _told(traffic: dict[str, tuple[float, float]]) -> str:
    words = []
    for name, (count, amount) in traffic.items():
        size = f" ({amount / 1e6:,.1f} MB)" if amount else ""
        words.append(f"{count:,.1f} {name}{size}")
    return ", ".join(words)


def _shapes(before: Report, after: Report) -> Differs | None:
    """Batch and sizes of the network, as far as the inputs of matrix operators tell them."""
    old, new = before.run.shapes, after.run.shapes
    if not old or not new:
        return None
    shared = sum(min(part, new.get(name, 0.0)) for name, part in old.items())
    if shared >= SAME_SHAPES * min(sum(old.values()), sum(new.values())):
        return None
    first, second = (
        max(rows, key=lambda name: rows[name] - others.get(name, 0.0))
        for rows, others in ((old, new), (new, old))
    )
    return _differs(
        "shapes",
        "input sizes",
        first,
        second,
        "the batch or the network is another, so a step is another amount of work",
    )


def _program(before: Report, after: Report) -> Differs | None:
    """Whether both sides run the same kernels: the part of kernel time in names both have."""
    names: list[dict[str, float]] = []
    for report in (before, after):
        spent: dict[str, float] = {}
        for kernel in report.kernels:
            spent[kernel.name] = spent.get(kernel.name, 0.0) + kernel.ms
        names.append(spent)
    old, new = names
    total = min(sum(old.values()), sum(new.values()))
    if not total:
        return None
    shared = sum(min(ms, new.get(name, 0.0)) for name, ms in old.items())
    if shared >= SAME_PROGRAM * total:
        return None
    part = f"{100 * shared / total:.0f} % of the shorter kernel time is in names both have"
    return _differs(
        "kernels",
        "kernels",
        f"names: {len(old):,}",
        f"names: {len(new):,}",
        f"{part}: another model, compiler or GPU",
    )
