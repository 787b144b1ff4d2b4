"""What does a trace's file name say: which rank, and which part of the name is only a time?

Every framework spells ranks differently, so the spellings are data. Process ids, timestamps and
iteration numbers are never taken for ranks.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePath
from typing import NamedTuple

_SUFFIXES = re.compile(r"(?:\.(?:json|gz|zst|trace|pt|digest))+$", re.IGNORECASE)

_DIMENSION = r"(?:d?tp|e?tp|dp|edp|pp|d?cp|pcp|ep|sp|local|node)"

# Spellings of a global rank, the surest first.
_RANK: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("global rank N", re.compile(r"(?:global|world)[-_ ]?rank[-_ ]?(\d{1,6})(?!\d)", re.I)),
    # rank7, -rank-34., rank[3], _rank_0., gpu-rank-00; a LoRA has a rank of its own and tp_rank_1
    # counts within one dimension only.
    (
        "rank-N",
        re.compile(
            rf"(?<![a-z])(?<!lora[-_ ])(?<!lora)(?<!low[-_ ])(?P<of>{_DIMENSION}[-_ ]?)?"
            r"rank[-_ \[(=]?(\d{1,6})(?!\d)",
            re.I,
        ),
    ),
    ("rank-N", re.compile(r"(?<=[a-z])Rank[-_]?(\d{1,6})(?!\d)")),
    ("rNtMM", re.compile(r"(?<![a-zA-Z0-9])r(\d{1,6})t\d+(?=_|$)")),
    # Several dimension/number pairs, then the rank alone.
    (
        "dimensions, then N",
        re.compile(rf"(?<![a-z])(?:{_DIMENSION}[-_]?\d+[-_.]){{2,}}(\d{{1,6}})$", re.I),
    ),
)
_PAIR = re.compile(rf"(?<![a-z])({_DIMENSION})(?:[-_ ]?rank)?[-_](\d{{1,6}})(?!\d)", re.I)

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TIME = re.compile(
    r"(?<!\d)20\d\d[-_.]?[01]\d[-_.]?[0-3]\d"
    r"(?:[T_ -]?[0-2]\d[-_.:h]?[0-5]\d(?:[-_.:m]?[0-5]\d)?)?(?!\d)"
    rf"|{_MONTH}_\d\d?_\d\d_\d\d_\d\d"
    # Seconds, milli- or nanoseconds since 1970; ids of processes and jobs are shorter.
    r"|(?<!\d)\d{10,}(?:\.\d+)?"
)
_CYCLE_WORD = r"(?:iteration|iter|global_step|steps?|cycle|span|repeat|epoch)"
_CYCLE = re.compile(
    rf"(?<![a-z]){_CYCLE_WORD}[-_ ]?\d+(?!\d)"
    # The step number that a trace handler adds: trace_20, trace_20_rank0, rank0_20.
    r"|(?<=trace[-_])\d{1,8}(?=$|[-_]rank)|(?<=profile[-_])\d{1,8}(?=$|[-_]rank)"
    r"|(?<=rank\d[-_])\d{1,8}$|(?<=rank\d\d[-_])\d{1,8}$",
    re.I,
)
_CYCLE_FOLDER = re.compile(rf"(?:.*[-_])?{_CYCLE_WORD}[-_ ]?\d+", re.I)

_LAST_NUMBER = re.compile(r"^(.*?)(\d{1,5})$")
# Words whose number is a setting of the run: batch_size_64 and batch_size_128 are no ranks.
_SETTING = re.compile(
    r"(?:batch|bs|size|workers|seq|len|length|layers?|nodes?|gpus?|world|steps?|iter|iteration"
    r"|epoch|run|trial|version|v|seed|cycle|span|repeat)[-_ ]?$",
    re.I,
)
# host_pid.nanoseconds: the number before the time is a process id.
_PROCESS = re.compile(r"_\d+\.\d{13,}$")


class NamedRank(NamedTuple):
    """A rank read from a name, and how it was spelled there."""

    rank: int
    spelling: str


def stem(name: str) -> str:
    """The name without the suffixes that traces wear (.pt.trace.json.gz and the like)."""
    return _SUFFIXES.sub("", name)


def rank_in_name(name: str) -> NamedRank | None:
    """The global rank that a file or folder name states; None when it states none."""
    text = stem(name)
    for spelling, pattern in _RANK:
        for found in pattern.finditer(text):
            if not found.groupdict().get("of"):
                return NamedRank(int(found[found.lastindex or 1]), spelling)
    return None


def only_dimension(name: str) -> NamedRank | None:
    """The number of the one parallel dimension named (TP-0-DECODE); None for none or several."""
    pairs = _PAIR.findall(stem(name))
    # A node is no parallel dimension: it tells which of several equal local numbers is meant.
    if len(pairs) != 1 or pairs[0][0].lower() == "node":
        return None
    dimension, number = pairs[0]
    return NamedRank(int(number), f"{dimension}-N")


def without_time(name: str) -> str:
    """The stem with dates and timestamps taken out: equal for the cycles of one process."""
    return _TIME.sub("*", stem(name))


def without_cycle(name: str) -> str:
    """The stem with times and iteration or cycle numbers taken out."""
    return _CYCLE.sub("*", without_time(name))


def last_number(name: str) -> tuple[str, int] | None:
    """The stem up to its last number, and that number; None if it is a setting or absent."""
    text = without_time(name).rstrip("*._- ")
    found = _LAST_NUMBER.match(text)
    if not found or not found[1] or _SETTING.search(found[1]):
        return None
    return found[1], int(found[2])


def ends_in_process_id(name: str) -> bool:
    """Whether the name has the form host_pid.nanoseconds, as tensorboard_trace_handler writes."""
    return bool(_PROCESS.search(stem(name)))


def run_folder(path: PurePath) -> Path:
    """The file's folder, absolute, less iteration_10 and the like: recordings of one run."""
    parts = Path(os.path.abspath(path)).parent.parts
    return Path(*(part for part in parts if not _CYCLE_FOLDER.fullmatch(part)))


def process(path: PurePath) -> tuple[Path, str]:
    """Run folder and name without cycle: equal for all recordings that one process made."""
    return run_folder(path), without_cycle(path.name)
