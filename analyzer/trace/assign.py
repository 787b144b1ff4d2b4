"""Whose is each trace: which rank, which cycle of it, and do all of them belong to one run?

Answered from what the reader found in the files (distributedInfo, time span) and from their names.
Several recordings of one rank are cycles of it, never ranks, and runs are never blended silently.
Times in nanoseconds.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

from analyzer.config import DEFAULT_THRESHOLDS, Thresholds
from analyzer.errors import UsageError
from analyzer.trace import filenames
from analyzer.trace.discover import natural_order
from analyzer.trace.stores import TracePath

OPTION = "option"
DISTRIBUTED_INFO = "distributedInfo"
SINGLE_FILE = "single file"
ORDER = "order"
ORDER_IN_TIME = "order in time"

# Later than this a time is one since 1970 (this is 2001); earlier ones have bases of their own.
EPOCH_TIMES_NS = 10**18

_WITHOUT_EVIDENCE = frozenset({SINGLE_FILE, ORDER, ORDER_IN_TIME})

Key = TypeVar("Key")


@dataclass(frozen=True)
class FileInfo:
    """What the reader found in one trace that helps to say whose it is."""

    path: TracePath
    distributed_rank: int | None = None
    world_size: int | None = None
    span_ns: tuple[int, int] | None = None
    host: str | None = None


@dataclass(frozen=True)
class Assignment:
    """Rank and cycle of one file and the rule that gave them; `note` where the sources disagree."""

    path: TracePath
    rank: int
    cycle: int
    rule: str
    note: str = ""


class _Claim(NamedTuple):
    rank: int
    rule: str


def assign_ranks(
    files: Sequence[FileInfo],
    *,
    given: Mapping[str, int] | None = None,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> list[Assignment]:
    """Rank and cycle of every file, sorted by both.

    The first rule that speaks for a file decides: `given` (file name or end of path -> rank), then
    distributedInfo, the name, a number that is all that differs between names, order. Cycles count
    from 0 in order of time.
    """
    claims = _from_option(files, given or {})
    for rule in (_from_metadata, _from_names, _from_dimension):
        claims |= rule([f for f in files if f.path not in claims])
    claims |= _from_numbers([f for f in files if f.path not in claims], thresholds)
    claims |= _from_order([f for f in files if f.path not in claims], claims)
    named = {path: found.rank for path, found in _named(files).items()}
    return [
        Assignment(file.path, rank, cycle, claims[file.path].rule, _note(file, rank, named))
        for rank, members in sorted(_grouped(files, lambda f: claims[f.path].rank).items())
        for cycle, file in enumerate(sorted(members, key=_in_time))
    ]


def _grouped(
    files: Iterable[FileInfo], key: Callable[[FileInfo], Key]
) -> dict[Key, list[FileInfo]]:
    groups: dict[Key, list[FileInfo]] = defaultdict(list)
    for file in files:
        groups[key(file)].append(file)
    return groups


def _in_time(file: FileInfo) -> tuple[int, list[tuple[int, str]]]:
    return (file.span_ns[0] if file.span_ns else 0, natural_order(file.path))


def _note(file: FileInfo, rank: int, named: Mapping[TracePath, int]) -> str:
    said, name = file.distributed_rank, named.get(file.path, rank)
    if said is not None and said != rank:
        return f"distributedInfo says rank {said}"
    return "" if name == rank else f"its name says rank {name}"


def _from_option(files: Sequence[FileInfo], given: Mapping[str, int]) -> dict[TracePath, _Claim]:
    claims: dict[TracePath, _Claim] = {}
    for key, rank in given.items():
        end = "/" + key.lstrip("/")
        meant = [f.path for f in files if f"/{f.path.as_posix()}".endswith(end)]
        if len(meant) != 1:
            problem = "several files have" if meant else "no file has"
            raise UsageError(f"A rank is given for {key}, but {problem} that name.")
        claims[meant[0]] = _Claim(rank, OPTION)
    return claims


def _from_metadata(files: Sequence[FileInfo]) -> dict[TracePath, _Claim]:
    """Ranks of distributedInfo, but for files that cannot all be the rank they claim to be.

    Jobs that join their process group after the profiler has started write rank 0 everywhere.
    """
    claims: dict[TracePath, _Claim] = {}
    for rank, members in _grouped(files, lambda f: f.distributed_rank).items():
        names_differ = len({n.rank for n in _named(members).values()}) > 1
        all_zero = rank == 0 and _share_time(members)
        if rank is not None and not names_differ and not all_zero:
            claims |= {f.path: _Claim(rank, DISTRIBUTED_INFO) for f in members}
    return claims


def _named(files: Sequence[FileInfo]) -> dict[TracePath, filenames.NamedRank]:
    """Ranks stated by file names, else by the nearest folder that not all files share."""
    if not files:
        return {}
    paths = {f.path: Path(os.path.abspath(f.path)) for f in files}
    common = Path(os.path.commonpath([path.parent for path in paths.values()]))
    shared = common.parent if len(paths) == 1 else common
    named = {}
    for path, absolute in paths.items():
        stated = map(filenames.rank_in_name, reversed(absolute.relative_to(shared).parts))
        if found := next(filter(None, stated), None):
            named[path] = found
    return named


def _from_names(files: Sequence[FileInfo]) -> dict[TracePath, _Claim]:
    """Ranks from names, but for those that several hosts use at one time: they count per host."""
    named = _named(files)
    claims: dict[TracePath, _Claim] = {}
    for rank, members in _grouped(
        (f for f in files if f.path in named), lambda f: named[f.path].rank
    ).items():
        hosts = {f.host for f in members}
        if len(hosts) < 2 or not _share_time(members):
            claims |= {
                f.path: _Claim(rank, f"file name ({named[f.path].spelling})") for f in members
            }
    return claims


def _from_dimension(files: Sequence[FileInfo]) -> dict[TracePath, _Claim]:
    """The number of the only parallel dimension named, unless files share it (tp-8 as a size)."""
    found = {f.path: filenames.only_dimension(f.path.name) for f in files}
    named = {path: rank for path, rank in found.items() if rank}
    processes = {filenames.without_cycle(path.name) for path in named}
    if len({rank.rank for rank in named.values()}) != len(processes):
        return {}
    return {p: _Claim(n.rank, f"file name ({n.spelling})") for p, n in named.items()}


def _from_numbers(files: Sequence[FileInfo], thresholds: Thresholds) -> dict[TracePath, _Claim]:
    """Ranks where names of files recorded together differ in their last number only."""
    found = {f.path: filenames.last_number(f.path.name) for f in files}
    numbers = {path: number[1] for path, number in found.items() if number}
    texts = {(filenames.run_folder(path), number[0]) for path, number in found.items() if number}
    if len(numbers) < len(files) or len(texts) != 1 or len(set(numbers.values())) < 2:
        return {}
    by_number = _grouped(files, lambda f: numbers[f.path])
    # Without a time, or where it may be a process id, only 0, 1, 2 ... are believed.
    if any(f.span_ns is None or filenames.ends_in_process_id(f.path.name) for f in files):
        are_ranks = set(by_number) == set(range(len(by_number)))
    else:
        are_ranks = len(_recordings(by_number.values(), thresholds.separate_run_gap_ms)) == 1
    if not are_ranks or any(_share_time(members) for members in by_number.values()):
        return {}
    return {path: _Claim(n, f"file name (number {n})") for path, n in numbers.items()}


def _from_order(
    files: Sequence[FileInfo], claims: Mapping[TracePath, _Claim]
) -> dict[TracePath, _Claim]:
    """The lowest free ranks for files that say nothing; recordings one after another share one."""
    lanes = [lane for process in _processes(files) for lane in _lanes(process)]
    rule = ORDER
    if len(lanes) == 1 and not claims:
        rule = SINGLE_FILE if len(lanes[0]) == 1 else ORDER_IN_TIME
    taken = {claim.rank for claim in claims.values()}
    free = (rank for rank in count() if rank not in taken)
    return {
        f.path: _Claim(rank, rule) for lane, rank in zip(lanes, free, strict=False) for f in lane
    }


def _processes(files: Sequence[FileInfo]) -> list[list[FileInfo]]:
    """Files whose names differ in times and cycle numbers only, in natural order."""
    in_order = sorted(files, key=lambda f: natural_order(f.path))
    return list(_grouped(in_order, lambda f: (f.host, filenames.process(f.path))).values())


def _lanes(files: Sequence[FileInfo]) -> list[list[FileInfo]]:
    """The fewest rows in which no two recordings overlap; files without a time stand alone."""
    lanes: list[list[FileInfo]] = []
    for file in sorted(files, key=_in_time):
        lane = next((row for row in lanes if _one_after_another(row[-1], file)), None)
        if lane is None:
            lanes.append([file])
        else:
            lane.append(file)
    return lanes


def _one_after_another(a: FileInfo, b: FileInfo) -> bool:
    """Whether `b` begins once `a` has ended; False without times."""
    return bool(a.span_ns and b.span_ns and a.span_ns[1] <= b.span_ns[0])


def _share_time(files: Sequence[FileInfo]) -> bool:
    """Whether two recordings of one folder are known to overlap."""
    timed = [f for f in files if f.span_ns]
    return any(
        not _one_after_another(a, b)
        for members in _grouped(timed, lambda f: filenames.run_folder(f.path)).values()
        for a, b in pairwise(sorted(members, key=_in_time))
    )


def _recordings(ranks: Iterable[Sequence[FileInfo]], gap_ms: float) -> list[list[FileInfo]]:
    """Ranks recorded together, cycles included; ranks without a time are left out."""
    gap_ns = round(gap_ms * 1e6)
    spans = []
    for members in ranks:
        times = [f.span_ns for f in members if f.span_ns]
        if times:
            spans.append((min(t[0] for t in times), max(t[1] for t in times), members))
    recordings: list[list[FileInfo]] = []
    reach = 0
    for first, last, members in sorted(spans, key=lambda span: span[:2]):
        if not recordings or first > reach + gap_ns:
            recordings.append([])
        recordings[-1] += members
        reach = max(reach, last)
    return recordings


def separate_runs(
    files: Sequence[FileInfo],
    assignments: Sequence[Assignment],
    *,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> None:
    """Raises UsageError, naming the runs, where the files cannot all come from one.

    That is: world sizes differ, a rank is in several folders or under several names, or files that
    do not say their rank lie in several folders or were recorded one long after the other.
    """
    sizes = _grouped((f for f in files if f.world_size), lambda f: f.world_size)
    if len(sizes) > 1:
        listed = " and ".join(str(size) for size in sizes)
        raise _different(files, f"their world sizes are {listed}")
    whose = {a.path: a for a in assignments}
    for rank, members in _grouped(files, lambda f: whose[f.path].rank).items():
        if _share_time(members):
            raise _different(members, f"all of them are rank {rank} at the same time")
    judged = [f for f in files if whose[f.path].rule != OPTION]
    ranks = _grouped(judged, lambda f: whose[f.path].rank)
    for rank, members in ranks.items():
        if len({filenames.process(f.path) for f in members}) > 1:
            raise _different(judged, f"{len(members)} files are rank {rank}")
    if all(f.span_ns and f.span_ns[0] >= EPOCH_TIMES_NS for f in judged):
        gap_ms = thresholds.separate_ranks_gap_ms
        if len(_recordings(ranks.values(), gap_ms)) > 1:
            raise _different(judged, "they were recorded at different times")
    if not any(whose[f.path].rule in _WITHOUT_EVIDENCE for f in judged):
        return
    if len({filenames.run_folder(f.path) for f in judged}) > 1:
        raise _different(judged, "they lie in several folders and do not say their rank")
    if len(_recordings(ranks.values(), thresholds.separate_run_gap_ms)) > 1:
        raise _different(judged, "they do not say their rank and were not recorded together")


def _different(files: Sequence[FileInfo], why: str) -> UsageError:
    """The refusal, listing folders where there are several, else files."""
    folders = _grouped(files, lambda f: filenames.run_folder(f.path))
    runs = [f.path.name for f in sorted(files, key=_in_time)]
    if len(folders) > 1:
        above = Path(os.path.commonpath(list(folders)))
        ordered = sorted(folders, key=natural_order)
        runs = [f.relative_to(above).as_posix() if f != above else f.name for f in ordered]
    shown = ", ".join(runs[:8]) + (f" and {len(runs) - 8} more" if len(runs) > 8 else "")
    return UsageError(
        f"These traces are of different runs: {shown}; {why}.",
        "Pass the files or the folder of one run.",
    )
