"""What do fixes give one after the other? Sentences and tables of the what-ifs; times in ms.

A replayed step is only ever compared with the replay of the unchanged run, so the first line of
each table is that step, which can differ from the recorded one by the replay's error.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.render import gains
from analyzer.render.format import (
    NOT_BOUNDED,
    NOT_MEASURABLE,
    multiple,
    percent,
    plural,
    ranges,
    shorten,
    significant,
)
from analyzer.render.rank_tables import Grid, Head
from analyzer.render.sentences import scale_of
from analyzer.report.document import After, Edit, Report, Turn, WhatIf

# Edit -> what is no more, and the time class its colour comes from.
EDITS = {
    "no-data-loading": ("no waiting for input", "data_loading"),
    "no-launch-overhead": ("no late launches", "launch"),
    "no-communication": ("no communication", "comm_transfer"),
    "no-straggler": ("no late rank", "comm_wait"),
    "no-host-sync": ("no blocking calls", "host_sync"),
    "no-optimizer": ("no optimizer", "optimizer"),
    "bandwidth-x2": ("links twice as fast", "comm_transfer"),
    "perfect-overlap": ("communication hidden as well as can be", "comm_transfer"),
}
# Joint gains nearer to the sum of both than this part of the step are told as the sum.
_SAME = 0.005
_LIMITS = {"good": "under 5 %", "fair": "under 10 %", "poor": "10 % or more"}
_AFTER = [Head("f"), Head("s"), Head("ceiling 1/f"), Head("ceiling 1/s")]
_CEILINGS = "; f and s as each leaves the run; 1/f times the step of then, 1/s times one GPU"


def name(edit: str) -> str:
    """An edit in plain words; one this program does not know keeps its id."""
    return EDITS[edit][0] if edit in EDITS else shorten(edit, 40)


def class_of(edit: str) -> str:
    """The time class whose colour an edit takes."""
    return EDITS[edit][1] if edit in EDITS else "unexplained"


def base_ms(report: Report) -> float:
    """The step that gains are measured from: the replay of the unchanged run, or as recorded."""
    if report.whatif.sequence:
        first = report.whatif.sequence[0]
        return first.step_ms + first.gain_ms
    replayed = (e.step_ms * e.speedup for e in report.whatif.edits if e.step_ms and e.speedup)
    recorded = report.steps.wall_ms.mean
    return next(replayed, recorded) if report.whatif.basis == gains.REPLAY else recorded


def lead(report: Report) -> str:
    """What the fixes worth making give together, or why that is not known."""
    turns, scale = report.whatif.sequence, scale_of(report)
    if report.whatif.basis != gains.REPLAY:
        return "What two fixes give together only a replay tells; shares do not simply add up."
    if not turns:
        return "No what-if gains more than noise, so there is nothing to fix in turn."
    base, left = base_ms(report), turns[-1].step_ms
    names = ", then ".join(name(turn.edit) for turn in turns)
    gone = f"{scale.bare(base - left)} of {scale.ms(base)} go, {scale.ms(left)} stay"
    end = "" if len(turns) > 1 else "; nothing after it gains more than noise"
    return f"{_capital(names)} gives {_total(base, left)}: {gone}{end}."


def line(report: Report) -> str:
    """The turns in one line for the terminal, empty without any."""
    turns, scale = report.whatif.sequence, scale_of(report)
    if not turns:
        return ""
    base, left = base_ms(report), turns[-1].step_ms
    names = ", then ".join(name(turn.edit) for turn in turns)
    return f"in turn: {names}: {_total(base, left)} ({scale.bare(base)} to {scale.ms(left)})"


def _total(base: float, left: float) -> str:
    return multiple(base / left) if left > 0 else "an unbounded gain"


def interaction(report: Report) -> str:
    """How the two most worthwhile fixes act on each other; empty when no pair was replayed."""
    pair = report.whatif.interaction
    if pair is None:
        return ""
    scale = scale_of(report)
    both = f"{name(pair.first)} and {name(pair.second)}"
    text = f"Together, {both} take {scale.ms(pair.both_ms)} off the step"
    if abs(pair.ms) < _SAME * base_ms(report):
        return f"{text}, as much as the sum of each alone: they do not touch each other."
    if pair.ms > 0:
        more = f"{scale.ms(pair.ms)} more than the sum of each alone"
        return f"{text}, {more}: one hides what the other frees, so both are needed."
    less = f"{scale.ms(-pair.ms)} less than the sum of each alone"
    return f"{text}, {less}: in part they free the same time."


def quality(report: Report) -> str:
    """How far the replay can be trusted, or why there is none."""
    facts, scale = report.whatif, scale_of(report)
    error = facts.replay_error
    if error is None:
        return f"There is no replay: {_reason(facts)}"
    off = f"{percent(error)} ({scale.ms(error * report.steps.wall_ms.mean)})"
    text = f"The replay of the unchanged run differs from the recorded step by {off}"
    if facts.quality is not None:
        limit = _LIMITS.get(facts.quality)
        text += f": {shorten(facts.quality, 20)}" + (f" ({limit})" if limit else "")
    if facts.basis != gains.REPLAY:
        return f"{text}. So shares are given instead: {_reason(facts)}"
    return " ".join(part for part in (f"{text}.", _class_error(report), _replayed(facts)) if part)


def _class_error(report: Report) -> str:
    error = report.whatif.class_error
    if error is None:
        return ""
    ms = scale_of(report).ms(error * report.steps.wall_ms.mean)
    return f"The class that differs most is {percent(error)} of the step ({ms}) off."


def _reason(facts: WhatIf) -> str:
    reason = shorten(facts.reason, 300).rstrip(".")
    return f"{reason}." if reason else "the report does not say why."


def _replayed(facts: WhatIf) -> str:
    if not facts.steps:
        return ""
    which = "step" if len(facts.steps) == 1 else "steps"
    ranks = f" on {plural(len(facts.ranks), 'rank')}" if facts.ranks else ""
    return f"Replayed: {which} {shorten(ranges(facts.steps), 60)}{ranks}."


def in_turn(report: Report) -> Grid | None:
    """The turns of the waterfall, today's step first; None without any."""
    turns, base = report.whatif.sequence, base_ms(report)
    if not turns:
        return None
    scale = scale_of(report)
    rows = [["", "as it is", "", scale.bare(base), "1.00x", *_today(report)]]
    rows += [[str(place), *_turn(report, t, base)] for place, t in enumerate(turns, start=1)]
    heads = [Head("turn"), Head("what if", True), Head("takes off, ms"), Head("ms/step")]
    heads += [Head("speedup"), *_AFTER]
    return _known("Each together with all before it", heads, rows)


def _turn(report: Report, turn: Turn, base: float) -> list[str]:
    scale = scale_of(report)
    cells = [name(turn.edit), scale.bare(turn.gain_ms), scale.bare(turn.step_ms)]
    return [*cells, _total(base, turn.step_ms), *_after(turn.after)]


def every(report: Report) -> Grid | None:
    """All what-ifs, each alone; None without any."""
    facts, scale = report.whatif, scale_of(report)
    if not facts.edits:
        return None
    rows = [["as it is", scale.bare(base_ms(report)), multiple(1.0), *_today(report)]]
    rows += [_edit(report, edit) for edit in facts.edits]
    replayed = facts.basis == gains.REPLAY
    heads = [Head("what if", True), Head("ms/step"), Head("speedup" if replayed else "by share")]
    how = (
        "replayed" if replayed else "from shares, which count nothing that waits or takes its place"
    )
    grid = _known(f"Each alone, {how}", [*heads, *_AFTER], rows)
    return grid._replace(note=" ".join([*_reasons(facts.edits), grid.note]).strip())


def _edit(report: Report, edit: Edit) -> list[str]:
    label = name(edit.id) + (" (within noise)" if edit.noise else "")
    speedup = gains.with_interval(edit, multiple(edit.speedup, NOT_MEASURABLE))
    after = _after(edit.after) if edit.after or edit.speedup else [""] * 4
    return [label, scale_of(report).bare(edit.step_ms), speedup, *after]


def _reasons(edits: Sequence[Edit]) -> list[str]:
    """Why cells are unknown, each reason once with the edits it holds for."""
    found: dict[str, dict[str, None]] = {}
    for edit in edits:
        for reason in (edit.reason, edit.after.reason if edit.after else ""):
            words = shorten(reason, 200).rstrip(".")
            if words and words != NOT_BOUNDED:
                found.setdefault(words, {})[name(edit.id)] = None
    return [_capital(f"{', '.join(names)}: {words}.") for words, names in found.items()]


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _after(after: After | None) -> list[str]:
    if after is None:
        return [NOT_MEASURABLE] * 4
    ceilings = (after.ceiling_today, after.ceiling_one_gpu)
    shares = [significant(after.f), significant(after.s)]
    return shares + [gains.ceiling(after, value) for value in ceilings]


def _today(report: Report) -> list[str]:
    facts = report.scaling
    return _after(
        After(
            f=facts.f.value,
            s=facts.s.value,
            ceiling_today=facts.ceiling_today.value,
            ceiling_one_gpu=facts.ceiling_one_gpu.value,
        )
    )


def _known(caption: str, heads: Sequence[Head], rows: Sequence[Sequence[str]]) -> Grid:
    """The table without columns that are empty, or unknown in every line but that of today."""
    kept, gone = [], []
    for at, head in enumerate(heads):
        cells = {row[at] for row in rows[1:]} - {""}
        if cells == {NOT_MEASURABLE}:
            gone.append(head.name)
        elif cells:
            kept.append(at)
    told = caption + (_CEILINGS if len(heads) - 1 in kept else "")
    note = f"{NOT_MEASURABLE.capitalize()} after the fix: {', '.join(gone)}." if gone else ""
    shown = [[row[at] for at in kept] for row in rows]
    return Grid(told, [heads[at] for at in kept], shown, note)
