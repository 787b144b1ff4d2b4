"""What is the verdict on two sides, in one sentence, and how far can it be trusted?"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.config import Thresholds
from analyzer.report.comparison import Bar, Differs, Outcome, Ratio, Side
from analyzer.report.wording import NAMES, ms, percent
from analyzer.scaling import difference
from analyzer.scaling.difference import Difference

NOT_COMPARABLE, MIXED, UNCLEAR = "not-comparable", "mixed", "no-clear-change"
# Runs per side from which a claim is about the change and not about these runs.
GENERAL_RUNS = 5
# Of the time that moved: classes are named as the cause until this part is told.
_TOLD, _MOST_CAUSES = 0.8, 2
_WORDS = {"faster": "Faster", "slower": "Slower", UNCLEAR: "No clear change"}


def outcome(
    old: Side,
    new: Side,
    change: Difference,
    bars: Sequence[Bar],
    differ: Sequence[Differs],
    limits: Thresholds,
    *,
    stands: bool,
) -> Outcome:
    """The verdict; `stands` is False where a blocking difference forbids one."""
    if not stands:
        return Outcome(
            text=_not_comparable(differ),
            outcome=NOT_COMPARABLE,
            ratio=None,
            causes=[],
            sure="A verdict would be about that difference, not about the change.",
        )
    said = Ratio(
        value=change.value, lo=change.lo, hi=change.hi, basis=change.basis, reason=change.reason
    )
    word = difference.outcome(change, limits.equal_share, _least_steps(old, new))
    against = _against(bars, old.steps.wall_ms.mean, limits, word)
    if against:
        text = _mixed(old, new, word, against)
        return Outcome(
            text=text,
            outcome=MIXED,
            ratio=said,
            causes=[bar.class_ for bar in against],
            sure=_sure(old, new, change, limits, word),
        )
    causes = _causes(bars, new.steps.wall_ms.mean - old.steps.wall_ms.mean)
    causes = causes if word != UNCLEAR else []
    return Outcome(
        text=f"{_moved(old, new, word)}{_because(old, causes)}.",
        outcome=word,
        ratio=said,
        causes=[bar.class_ for bar in causes],
        sure=_sure(old, new, change, limits, word),
    )


def _not_comparable(differ: Sequence[Differs]) -> str:
    row = next(row for row in differ if row.blocking)
    return f"Not comparable: {row.title}: {row.before} against {row.after}."


def _least_steps(old: Side, new: Side) -> int:
    return min(run.n for run in (*old.runs, *new.runs))


def _moved(old: Side, new: Side, word: str) -> str:
    """The headline: word, both steps, percent."""
    base, end = old.steps.wall_ms.mean, new.steps.wall_ms.mean
    part = abs(end - base) / base
    direction = "less" if end < base else "more"
    bare = ms(base, base).removesuffix(" ms")
    far = f"{percent(part)} {direction}" if part else "the same"
    return f"{_WORDS[word]}: {bare} → {ms(end, base)} per step ({far})"


def _causes(bars: Sequence[Bar], delta: float) -> list[Bar]:
    """The classes that moved with the step, largest first, until most of the move is told."""
    along = [bar for bar in bars if bar.delta_ms * delta > 0]
    along.sort(key=lambda bar: -abs(bar.delta_ms))
    chosen: list[Bar] = []
    told = 0.0
    for bar in along[:_MOST_CAUSES]:
        chosen.append(bar)
        told += abs(bar.delta_ms)
        if told >= _TOLD * abs(delta):
            break
    return chosen


def _because(old: Side, causes: Sequence[Bar]) -> str:
    if not causes:
        return ""
    base = old.steps.wall_ms.mean
    return ", because " + " and ".join(_told(bar, base) for bar in causes)


def _told(bar: Bar, base: float) -> str:
    verb = "fell" if bar.delta_ms < 0 else "rose"
    name = NAMES.get(bar.class_, bar.class_)
    return f"{name} {verb} by {ms(abs(bar.delta_ms), base)}"


def _against(bars: Sequence[Bar], base: float, limits: Thresholds, word: str) -> list[Bar]:
    """The classes that make a verdict mixed: clear moves of weight in both directions, the one
    against the step at least half as large as what the step moved.
    """
    heavy = [bar for bar in bars if bar.clear and abs(bar.delta_ms) >= limits.mixed_share * base]
    down = min((b for b in heavy if b.delta_ms < 0), key=lambda b: b.delta_ms, default=None)
    up = max((b for b in heavy if b.delta_ms > 0), key=lambda b: b.delta_ms, default=None)
    if down is None or up is None:
        return []
    net = abs(sum(bar.delta_ms for bar in bars))
    other = up if word == "faster" else down
    if word != UNCLEAR and abs(other.delta_ms) < net / 2:
        return []
    return [up, down] if word == "slower" else [down, up]


def _mixed(old: Side, new: Side, word: str, both: Sequence[Bar]) -> str:
    base = old.steps.wall_ms.mean
    words = {"faster": "step faster", "slower": "step slower", UNCLEAR: "step as long as before"}
    bare, end = ms(base, base).removesuffix(" ms"), ms(new.steps.wall_ms.mean, base)
    first, second = (_told(bar, base) for bar in both)
    return f"Mixed: {words[word]} ({bare} → {end}), but {first} and {second}."


def _sure(old: Side, new: Side, change: Difference, limits: Thresholds, word: str) -> str:
    """How sure: interval, unit of replication, and how many more runs would settle it."""
    runs = min(len(old.runs), len(new.runs))
    parts = [_interval(change)]
    if word == UNCLEAR:
        parts.append(_unclear(change, limits, _least_steps(old, new)))
    if change.basis != "runs":
        parts.append(
            "One run per side says that these two runs differ, not that the change did it."
            if word != UNCLEAR
            else ""
        )
    elif runs < GENERAL_RUNS and word != UNCLEAR:
        parts.append(f"{GENERAL_RUNS} runs per side would make it a general claim.")
    parts.append(_more(change, limits, runs, word))
    return " ".join(part for part in parts if part)


def _interval(change: Difference) -> str:
    if change.lo is None or change.hi is None:
        reason = change.reason.removeprefix("no interval: ")
        return f"There is no interval: {reason}."
    unit = "by the spread of the runs" if change.basis == "runs" else "by the steps' own spread"
    lo, hi = _signed(change.lo - 1.0), _signed(change.hi - 1.0)
    return f"95 % interval of the change {lo} to {hi}, {unit}."


def _signed(fraction: float) -> str:
    return f"{'+' if fraction > 0 else '−' if fraction < 0 else ''}{percent(abs(fraction))}"


def _unclear(change: Difference, limits: Thresholds, least_steps: int) -> str:
    if change.lo is None or change.hi is None:
        return ""
    margin = limits.equal_share
    if 1.0 - margin <= change.lo and change.hi <= 1.0 + margin:
        return f"The step is as long as before, within {percent(margin)}."
    if change.basis == "steps" and least_steps < difference.DECIDING_STEPS:
        return f"Fewer than {difference.DECIDING_STEPS} steps of a run decide nothing."
    if change.hi < 1.0 or change.lo > 1.0:
        return f"It moved, but less than {percent(margin)} cannot be ruled out."
    return "It may be longer or shorter."


def _more(change: Difference, limits: Thresholds, runs: int, word: str) -> str:
    """How many runs per side would settle what is not settled."""
    if change.lo is None or change.hi is None:
        return "Record at least 5 steps, and several runs of each side."
    margin = limits.equal_share
    settled = 1.0 - margin <= change.lo and change.hi <= 1.0 + margin
    if word != UNCLEAR or settled:
        return ""
    needed = difference.runs_needed(change, margin)
    if needed is None:
        return f"More than {difference.MOST_RUNS} runs per side would be needed to tell."
    if change.basis == "steps":
        return f"At least {needed} runs per side are needed to tell."
    more = max(1, needed - runs)
    return f"About {more} more {'run' if more == 1 else 'runs'} per side would tell."
