"""When is a file that could be opened refused all the same, and what is the user told?

Every refusal is one sentence with the file's name and size, and a hint what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from analyzer.errors import UnusableInput
from analyzer.trace.blocks import LARGEST_PART, Remainder
from analyzer.trace.dialect import PROFILER_CATEGORIES
from analyzer.trace.schema import Kind, Trace, TraceMeta

# One torn event may be an accident; two seams between the texts of two processes tear two.
TORN = 2
# One event with another process is a damaged event; a merged rank has about as many as the others.
MERGED_SHARE = 0.1


def require_events(meta: TraceMeta, rest: Remainder) -> None:
    """UnusableInput for a file without an event of a PyTorch profiler, or one that is no trace."""
    if rest.endless:
        raise _refused(
            meta,
            f"an event or a header of more than {LARGEST_PART >> 20} MiB, which no profiler writes",
            "record again: the file is damaged, or no trace",
        )
    if not any(c.name.lower() in PROFILER_CATEGORIES for c in meta.categories):
        raise _refused(meta, _without_events(meta), "pass the file that torch.profiler exported")


def _without_events(meta: TraceMeta) -> str:
    if meta.categories:
        seen = ", ".join(c.name or "no category" for c in meta.categories[:5])
        return f"{meta.events:,} events, none from a PyTorch profiler (categories: {seen})"
    if meta.events:
        return f"{meta.events:,} events, none of them with a length"
    if not meta.size:
        return "empty file"
    if meta.malformed:
        return f"no trace events in it, {meta.malformed:,} that cannot be read"
    return "no trace events in it"


def require_one_writer(trace: Trace, rest: Remainder) -> None:
    """UnusableInput for a file whose text is that of several processes, or of one written twice.

    Their texts replace or follow each other in chunks, so events are cut at the seams. What is
    left would look like one rank that did half of two ranks' work.
    """
    torn = rest.malformed >= TORN and any(
        len(_processes(trace, kind)) > 1 for kind in (Kind.OP, Kind.RUNTIME, Kind.ANNOTATION)
    )
    if rest.several or torn:
        raise _refused(
            trace.meta,
            "written by several processes, whose texts are mixed in it",
            "give each rank a file name of its own, and record again",
        )
    if _merged(trace):
        raise _refused(
            trace.meta,
            "it holds the operators of several processes, which cannot be told apart: their ids of "
            "launches and streams are the same",
            "pass the file of each rank as the profiler wrote it",
        )


def _merged(trace: Trace) -> bool:
    """Whether several processes each left a fair part of the operators, as in merged traces."""
    thread = trace.host.thread[trace.host.rows(Kind.OP)]
    count = np.bincount(thread, minlength=len(trace.threads))
    by_process: dict[str, int] = {}
    for (process, _), operators in zip(trace.threads, count.tolist(), strict=False):
        by_process[process] = by_process.get(process, 0) + operators
    return sum(n > MERGED_SHARE * len(thread) for n in by_process.values()) > 1


def _processes(trace: Trace, kind: Kind) -> set[str]:
    """Who did this: one process in every exporter, though some give each kind another one."""
    threads = np.unique(trace.host.thread[trace.host.rows(kind)])
    return {trace.threads[i][0] for i in threads.tolist()}


def require_sound(files: Iterable[TraceMeta]) -> None:
    """UnusableInput for the first file that could not be read just as it stands."""
    for meta in files:
        wrong = [
            "it ends in the middle" if meta.truncated else "",
            meta.damage,
            f"{meta.malformed:,} event(s) cannot be read" if meta.malformed else "",
            f"its text needs repair ({listed(meta.repairs)})" if meta.repairs else "",
        ]
        if any(wrong):
            raise _refused(
                meta,
                f"{' and '.join(filter(None, wrong))}, and --strict takes no damaged file",
                "leave --strict out to use what is sound and be told of the rest",
            )


def listed(repairs: Mapping[str, int]) -> str:
    """Kinds and counts, the most frequent first: "12 lone backslash, 1 raw quote"."""
    ordered = sorted(repairs.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {kind}" for kind, count in ordered)


def _refused(meta: TraceMeta, reason: str, hint: str) -> UnusableInput:
    return UnusableInput(f"{meta.name} ({meta.size:,} bytes): {reason}", hint)
