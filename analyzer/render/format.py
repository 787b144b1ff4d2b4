"""How is a value written for people? The one rounding rule and the one set of names and colours.

The rule: times carry the decimals that give the step at least three significant digits, so the
columns of a report line up and visibly add; shares carry one decimal; everything else carries
three significant digits. A value that is not zero never prints as zero, and None never prints
as a number.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

NOT_MEASURABLE = "not measurable"
NOT_BOUNDED = "not bounded by this trace"
# No measured share is exact enough for a larger ceiling to mean its digits.
LARGEST_MULTIPLE = 10_000
NOISE, MINOR, FIRST = 0.02, 0.05, 0.15
WORDING = (
    (NOISE, "within noise"),
    (MINOR, "minor"),
    (FIRST, "worth doing"),
    (math.inf, "first"),
)
_CONTROL = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@dataclass(frozen=True, slots=True)
class Look:
    """How a time class is shown: words, letter, hue on each theme, and hatch as second cue."""

    label: str
    verb: str
    letter: str
    light: str
    dark: str
    hatch: str = ""
    terminal: str = "white"


_BLUE, _RED, _GREY = ("#6392F1", "#39B5FF"), ("#932601", "#D63911"), ("#8C8F95", "#DADEE5")
LOOKS: dict[str, Look] = {
    "compute": Look("compute", "computes", "C", *_BLUE, terminal="blue"),
    "optimizer": Look("optimizer", "runs the optimizer", "O", *_BLUE, "wide", "bright_blue"),
    "comm_transfer": Look(
        "exposed transfer", "is communication that nothing hides", "X", *_RED, terminal="red"
    ),
    "comm_wait": Look("wait for ranks", "waits for other ranks", "w", *_RED, "dense", "bright_red"),
    "comm_unsplit": Look(
        "exposed communication",
        "is communication that nothing hides",
        "X",
        *_RED,
        "wide",
        "red",
    ),
    "data_loading": Look(
        "data loading", "waits for input", "I", "#4F0E8A", "#814EC6", "dots", "magenta"
    ),
    "copy": Look("memory copies", "copies memory", "M", "#1A625A", "#328172", terminal="green"),
    "launch": Look("late launches", "waits for kernels launched late", "L", *_GREY),
    "host_sync": Look("host sync", "refills after a blocking call", "S", *_GREY, "wide"),
    "host_other": Look("other host work", "waits for other host work", "H", *_GREY, "dots"),
    "dependency": Look("other stream", "waits for another stream", "D", *_GREY, "dense"),
    "unexplained": Look("unexplained", "is unexplained", "?", *_GREY, "outline"),
}
HIDDEN = Look("hidden communication", "is hidden", "h", "#DB7D24", "#F6CA7A", "light")
MODES = {
    "strong": "global batch fixed",
    "accum": "global batch and micro-batch fixed",
    "weak": "batch per GPU fixed",
}


def look(class_id: str) -> Look:
    """The look of a class; an id this program does not know keeps its name and is grey."""
    return LOOKS.get(class_id) or Look(class_id, f"is {class_id}", "?", *_GREY, "outline")


def _fixed(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}"
    if value != 0 and not text.strip("-0.,"):
        return f"<{10.0**-decimals:.{decimals}f}"
    return text


@dataclass(frozen=True, slots=True)
class StepScale:
    """Milliseconds written with the same decimals all over one report."""

    decimals: int

    @classmethod
    def of(cls, step_ms: float) -> StepScale:
        """Decimals for a step of `step_ms`: none above 10 s, one from 10 ms, one more per decade
        below; one when there is no step.
        """
        if step_ms >= 10_000:
            return cls(0)
        if step_ms >= 10 or step_ms <= 0:
            return cls(1)
        return cls(min(6, 2 - math.floor(math.log10(step_ms))))

    def bare(self, value: float | None) -> str:
        """Milliseconds without unit, for columns that name it."""
        return NOT_MEASURABLE if value is None else _fixed(value, self.decimals)

    def ms(self, value: float | None) -> str:
        """Milliseconds with unit."""
        return NOT_MEASURABLE if value is None else f"{self.bare(value)} ms"


def significant(value: float | None, none: str = NOT_MEASURABLE) -> str:
    """Three significant digits, whole digits never rounded away, `none` for None."""
    if value is None:
        return none
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(float(f"{value:.2e}"))))
    return f"{value:,.{max(0, 2 - exponent)}f}"


def percent(fraction: float | None) -> str:
    """A fraction as a percentage with one decimal."""
    return NOT_MEASURABLE if fraction is None else f"{_fixed(100 * fraction, 1)} %"


def multiple(value: float | None, none: str = NOT_BOUNDED) -> str:
    """A speedup or ceiling; a ceiling of None is unbounded, a speedup passes its own words."""
    if value is None:
        return none
    return f"{significant(value)}x" if value < LARGEST_MULTIPLE else f"over {LARGEST_MULTIPLE:,}x"


def count(value: float | None) -> str:
    """A whole number with thousands marks; a mean that is not whole has three digits."""
    if value is None or value != int(value):
        return significant(value)
    return f"{int(value):,}"


def plural(number: int, noun: str) -> str:
    """ "1 rank", "8 ranks"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def kind_label(kind: str) -> str:
    """The words for a kind of collective: "all-reduce" for all_reduce."""
    return kind.replace("_", "-")


def ranges(numbers: Sequence[int]) -> str:
    """Ascending whole numbers with runs joined: "0 to 3, 7"."""
    runs: list[list[int]] = []
    for value in numbers:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    words = (f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)
    return ", ".join(words)


def data_size(value: float | None) -> str:
    """Bytes in powers of 1,000."""
    if value is None:
        return NOT_MEASURABLE
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{count(value) if unit == 'B' else significant(value)} {unit}"
        value /= 1000
    return f"{significant(value)} TB"


def duration(seconds: float | None, none: str = NOT_MEASURABLE) -> str:
    """A run's length in the largest of s, min, h, d that is at least one."""
    if seconds is None:
        return none
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{significant(seconds / size)} {unit}"
    return f"{significant(seconds)} s"


def worth(share: float) -> str:
    """The fixed word for a share of the step: within noise, minor, worth doing, first."""
    return next(word for limit, word in WORDING if share < limit)


def clean(text: str) -> str:
    """One printable line: no control, bidirectional, zero-width or surrogate characters."""
    if text.isprintable():
        return text
    kept = [
        " " if char in "\t\r\n\u2028\u2029" else char
        for char in text
        if char in "\t\r\n\u2028\u2029" or unicodedata.category(char) not in _CONTROL
    ]
    return "".join(kept)


def shorten(text: str, width: int, mark: str = "…") -> str:
    """`text` cleaned and cut in the middle to `width`: both ends of a kernel name tell."""
    text = clean(text)
    if len(text) <= width:
        return text
    room = width - len(mark)
    tail = room * 2 // 5
    return text[: room - tail] + mark + text[len(text) - tail :]
