"""What the command line and notebooks call: each function takes the rooms in order."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from analyzer import fleet
from analyzer.cache import Cache
from analyzer.classify.classes import UNEXPLAINED
from analyzer.config import Settings
from analyzer.digest import RankDigest, class_times
from analyzer.digest import load as load_digest
from analyzer.errors import AnalyzerError, UnusableInput, UsageError
from analyzer.fleet import Progress
from analyzer.interop.frames import frames, write_csv
from analyzer.ranks.member import Member
from analyzer.ranks.pool import Job, pool
from analyzer.render import html
from analyzer.report import document, overlays
from analyzer.report.build import Request, build, label_of
from analyzer.report.caveats import Note
from analyzer.report.compare import compare as build_comparison
from analyzer.report.comparison import Comparison
from analyzer.report.document import InputFile, Report
from analyzer.report.fitting import Question, SizedRun
from analyzer.report.fitting import build as build_scaling
from analyzer.report.overlay import Overlay
from analyzer.report.scaling import ScalingReport
from analyzer.runs import Source, sources
from analyzer.trace import choose
from analyzer.trace.assign import OPTION, ORDER, Assignment, FileInfo, assign_ranks, separate_runs
from analyzer.trace.discover import Found, find
from analyzer.trace.refusals import require_sound
from analyzer.trace.stores import Remote, TracePath
from analyzer.whatif.study import study


@dataclass(frozen=True)
class Digested:
    """The digests of all usable files, what was not used, and notes on how they were read."""

    digests: dict[TracePath, RankDigest]
    unusable: list[InputFile]
    notes: list[Note] = field(default_factory=list)


@dataclass(frozen=True)
class Loaded:
    """A job ready to be reported: whose each file is, and notes on what was guessed of that and on
    how they were read. `paths` are the files by rank and cycle.
    """

    job: Job
    files: list[InputFile]
    notes: list[Note]
    label: str
    paths: dict[tuple[int, int], TracePath]


def digests(
    paths: Sequence[str],
    settings: Settings,
    *,
    jobs: int | None = None,
    executor: Executor | None = None,
    max_memory: int | None = None,
    cache: Cache | None = None,
    found: Found | None = None,
    progress: Progress = lambda path: None,
    strict: bool = False,
) -> Digested:
    """Digests of the traces and saved digests under `paths`, from the cache where it knows them.

    UnusableInput, with a sentence per file, when none is usable; if `strict`, also for one that had
    to be repaired.
    """
    found = found or find(paths)
    known = _known(found.traces, cache, progress)
    outcomes = fleet.digest_all(
        [path for path in found.traces if path not in known],
        settings,
        jobs=jobs,
        executor=executor,
        max_memory=max_memory,
        progress=progress,
        arrived=lambda outcome: _keep(outcome, cache),
    )
    made = known | {o.path: o.digest for o in outcomes if o.digest is not None}
    good = {path: made[path] for path in found.traces if path in made}
    bad = [(o.path, o.error) for o in outcomes if o.digest is None]
    for path in found.digests:
        try:
            good[path] = load_digest(path)
        except UnusableInput as error:
            bad.append((path, error.message))
        progress(path)
    unusable = [_skipped(s.name, s.bytes or 0, s.reason) for s in found.skipped]
    unusable += [_skipped(path.name, _size(path), reason) for path, reason in bad]
    if not good:
        raise UnusableInput(
            "no usable trace: "
            + (
                listed([sentence(file) for file in unusable], 8, "; ")
                or "nothing to read was named"
            ),
            "pass the files that torch.profiler exported, or the folder they are in",
        )
    if strict:
        require_sound(digest.meta for digest in good.values())
    return Digested(good, unusable)


def _known(
    paths: Sequence[TracePath], cache: Cache | None, progress: Progress
) -> dict[TracePath, RankDigest]:
    known: dict[TracePath, RankDigest] = {}
    for path in paths:
        # What lies in a store would have to be fetched to be known again.
        if cache is None or isinstance(path, Remote):
            continue
        digest = cache.get(path)
        if digest is not None:
            known[path] = digest
            progress(path)
    return known


def _keep(outcome: fleet.Outcome, cache: Cache | None) -> None:
    if cache is None or outcome.digest is None or isinstance(outcome.path, Remote):
        return
    cache.put(outcome.path, outcome.digest)


def _skipped(name: str, size: int, reason: str) -> InputFile:
    # Errors of one file begin with its name and size, which stand beside the reason here.
    named = re.compile(re.escape(name) + r"(?: \([\d,]+ bytes\))?: ")
    return InputFile(name=name, rank=None, bytes=size, events=0, reason=named.sub("", reason, 1))


def _size(path: TracePath) -> int:
    return path.stat().st_size if isinstance(path, Path) and path.exists() else 0


def sentence(file: InputFile) -> str:
    """Name, size (where it is known) and reason of a file that was skipped."""
    size = f" ({file.bytes:,} bytes)" if file.bytes else ""
    return f"{file.name}{size}: {file.reason}"


def listed(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first `most` names and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def load(
    digested: Digested,
    *,
    ranks: Collection[int] = (),
    rank_of: Mapping[str, int] | None = None,
    settings: Settings,
) -> Loaded:
    """Assigns ranks and cycles and pools them, or those of the given `ranks`, into a job.

    UsageError when the files are of different runs or a given rank is in none of them,
    UnusableInput when no step can be used.
    """
    infos = [_info(path, digest) for path, digest in digested.digests.items()]
    assignments = assign_ranks(infos, given=rank_of, thresholds=settings.thresholds)
    separate_runs(infos, assignments, thresholds=settings.thresholds)
    assignments = choose.assigned(assignments, ranks)
    members, files = [], []
    for a in assignments:
        digest = digested.digests[a.path]
        useless = _useless(digest)
        files.append(_used_file(a, digest, useless))
        if not useless:
            members.append(Member(a.rank, a.cycle, digest))
    if not members:
        raise UnusableInput(
            "no usable trace: " + listed([sentence(file) for file in files], 8, "; "),
            "record a few steps after the warm-up, with the activities of CPU and device",
        )
    return Loaded(
        job=pool(members, settings.thresholds),
        files=files + digested.unusable,
        notes=[*_guessed(assignments), *_disputed(assignments), *digested.notes],
        label=label_of(list(digested.digests)),
        paths={(a.rank, a.cycle): a.path for a in assignments},
    )


def _disputed(assignments: Sequence[Assignment]) -> list[Note]:
    """The remark on files whose name and content say different ranks."""
    disputed = [a for a in assignments if a.note and a.rule != OPTION]
    if not disputed:
        return []
    first = disputed[0]
    text = (
        f"{len(disputed)} file(s) say two ranks: {first.path.name} is taken for rank {first.rank} "
        f"by {first.rule}, but {first.note}."
    )
    return [Note("rank-disputed", text)]


def _guessed(assignments: Sequence[Assignment]) -> list[Note]:
    """The remark on files that do not say which of several ranks they are."""
    guessed = [a.path.name for a in assignments if a.rule == ORDER]
    if not guessed or len({a.rank for a in assignments}) == 1:
        return []
    text = (
        f"{len(guessed)} file(s) do not say their rank ({listed(guessed, 3)}): they are "
        "numbered in the order of their names."
    )
    return [Note("rank-by-order", text)]


def _useless(digest: RankDigest) -> str:
    """Why nothing can be said of a trace that was read; empty where something can."""
    if not digest.used:
        why = digest.steps[0].dropped if digest.steps else "there is none"
        return f"no step in it can be used: {why}"
    if not any(ns for step in digest.used for name, ns in step.ns.items() if name != UNEXPLAINED):
        return "neither an operator nor device work in its steps"
    return ""


def _info(path: TracePath, digest: RankDigest) -> FileInfo:
    return FileInfo(
        path=path,
        distributed_rank=digest.meta.rank,
        world_size=digest.meta.world_size,
        span_ns=(digest.span.start, digest.span.end),
        host=digest.meta.host,
    )


def _used_file(a: Assignment, digest: RankDigest, reason: str) -> InputFile:
    return InputFile(
        name=digest.meta.name,
        rank=a.rank if not reason else None,
        bytes=digest.meta.size,
        events=digest.meta.events,
        cycle=a.cycle,
        rank_rule=f"{a.rule}; {a.note}" if a.note else a.rule,
        reason=reason,
    )


def analyze(
    paths: Sequence[str],
    request: Request,
    settings: Settings,
    *,
    jobs: int | None = None,
    executor: Executor | None = None,
    max_memory: int | None = None,
    cache: Cache | None = None,
    ranks: Collection[int] = (),
    rank_of: Mapping[str, int] | None = None,
    progress: Progress = lambda path: None,
    strict: bool = False,
) -> Report:
    """The report on the traces (files, folders, patterns, digests) of one run.

    Only of some `ranks`, where they are given. An empty `request.label` is replaced by the name of
    the folder or file.
    """
    digested = digests(
        paths,
        settings,
        jobs=jobs,
        executor=executor,
        max_memory=max_memory,
        cache=cache,
        found=choose.named(find(paths), ranks),
        progress=progress,
        strict=strict,
    )
    loaded = load(digested, ranks=ranks, rank_of=rank_of, settings=settings)
    return report(loaded, request, settings)


def report(loaded: Loaded, request: Request, settings: Settings) -> Report:
    """The report on a loaded job."""
    if not request.label:
        request = replace(request, label=loaded.label)
    return build(loaded.job, loaded.files, loaded.notes, request, settings)


def compare(
    before: Sequence[Report | str],
    after: Sequence[Report | str],
    request: Request,
    settings: Settings,
    *,
    labels: tuple[str, str] = ("", ""),
    jobs: int | None = None,
    executor: Executor | None = None,
    max_memory: int | None = None,
    cache: Cache | None = None,
    ranks: Collection[int] = (),
    force: bool = False,
) -> Comparison:
    """The comparison of the runs of two sides: reports, or paths of saved ones, traces, digests.

    A side without a label takes the name of its first run. Sides that differ in what blocks a
    comparison get the verdict that they cannot be compared, unless `force`.
    """

    def opened_one(source: Source) -> Report:
        if source.report is not None:
            return document.read(source.report)
        return analyze(
            source.paths,
            request,
            settings,
            jobs=jobs,
            executor=executor,
            max_memory=max_memory,
            cache=cache,
            ranks=ranks,
        )

    def opened(items: Sequence[Report | str]) -> list[Report]:
        reports: list[Report] = []
        for item in items:
            if isinstance(item, Report):
                reports.append(item)
                continue
            reports += map(opened_one, sources(item))
        return reports

    return compared(opened(before), opened(after), request, settings, labels=labels, force=force)


def compared(
    before: Sequence[Report],
    after: Sequence[Report],
    request: Request,
    settings: Settings,
    *,
    labels: tuple[str, str],
    force: bool,
) -> Comparison:
    """The comparison of reports, the sides named as asked or after their runs."""
    first, second = labels[0] or before[0].run.label, labels[1] or after[0].run.label
    if first == second:
        first, second = "before", "after"
    return build_comparison(
        before,
        after,
        labels=(first, second),
        created=request.created,
        limits=settings.thresholds,
        force=force,
    )


def fit_scaling(
    sizes: Sequence[tuple[int | None, Loaded]], question: Question, settings: Settings
) -> ScalingReport:
    """The report on loaded jobs of several world sizes, each with its number of GPUs (None: the
    world size of its files).

    UsageError when two are of one size.
    """
    known = [(loaded.job.size if n is None else n, loaded) for n, loaded in sizes]
    ordered = sorted(known, key=lambda size: size[0])
    for (n, one), (other, two) in pairwise(ordered):
        if n == other:
            raise UsageError(
                f"{one.label} and {two.label} are both of {n} GPUs",
                "give one run for each size, or say the sizes: 8=PATH 16=PATH",
            )
    _, largest = ordered[-1]
    runs = [SizedRun(n, loaded.job, loaded.label) for n, loaded in ordered]
    return build_scaling(runs, report(largest, question.request, settings), question, settings)


def overlay(
    loaded: Loaded, request: Request, settings: Settings, found: Found, progress: Progress
) -> Overlay:
    """The tracks of a loaded job; the traces among `found` are read once more for class times.

    UnusableInput when one of them has gone meanwhile.
    """
    times = {}
    for key, path in loaded.paths.items():
        if path in found.traces:
            times[key] = class_times(path, settings)
            progress(path)
    path_found = study(loaded.job, settings.thresholds).path
    pieces = path_found.pieces if path_found else []
    return overlays.overlay(loaded.job, report(loaded, request, settings), pieces, times)


# The document knows no painting; whoever has analysed in a notebook sees it painted there.
setattr(Report, "_repr_html_", html.cell)  # noqa: B010

__all__ = [
    "AnalyzerError",
    "Question",
    "Request",
    "Settings",
    "analyze",
    "compare",
    "digests",
    "fit_scaling",
    "frames",
    "load",
    "overlay",
    "report",
    "write_csv",
]
