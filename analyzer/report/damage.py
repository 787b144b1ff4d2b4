"""Which files could not be read as they were written, and what is missing for that reason?

The rules on damage among the caveats: each gives its sentence, "" where no file is damaged so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from analyzer.config import Thresholds
from analyzer.ranks.pool import Job
from analyzer.trace.refusals import listed
from analyzer.trace.schema import TraceMeta


def ranks_text(ranks: Sequence[int]) -> str:
    """ "rank 3" or "ranks 0, 1, 2 and 5 more"."""
    shown = ", ".join(map(str, ranks[:3]))
    more = f" and {len(ranks) - 3} more" if len(ranks) > 3 else ""
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}{more}"


def _counted(job: Job, fact: Callable[[TraceMeta], int | bool], one: str, consequence: str) -> str:
    """A sentence about a defect counted in each file, naming the ranks that have it."""
    ranks = sorted({m.rank for m in job.members if fact(m.digest.meta)})
    total = sum(int(fact(m.digest.meta)) for m in job.members)
    return f"{total:,} {one} ({ranks_text(ranks)}): {consequence}." if ranks else ""


def truncated(job: Job, limits: Thresholds) -> str:
    """Files that end before their last bracket, or whose archive ends before its end mark."""
    return _counted(
        job,
        lambda meta: meta.truncated,
        "file(s) end in the middle",
        "complete events were kept and the last steps may be missing",
    )


def malformed(job: Job, limits: Thresholds) -> str:
    """Events lost to damaged text, and those that could be mended, by what was wrong with them."""
    repairs = sum((Counter(m.digest.meta.repairs) for m in job.members), Counter[str]())
    lost = _counted(
        job, lambda meta: meta.malformed, "event(s) could not be read", "they were left out"
    )
    if not repairs:
        return lost
    mended = _counted(
        job,
        lambda meta: sum(meta.repairs.values()),
        f"repair(s) made the text readable ({listed(repairs)})",
        "names may differ from those written, times do not",
    )
    return f"{lost} {mended}".strip()


def damaged(job: Job, limits: Thresholds) -> str:
    """Files that a disk or an archive did not give back as they were written, and why."""
    reasons = sorted({m.digest.meta.damage for m in job.members} - {""})
    if not reasons:
        return ""
    return _counted(
        job,
        lambda meta: bool(meta.damage),
        f"file(s) were not read as they were written, since {' and '.join(reasons)}",
        "what was read before is used, and any number in it may be wrong",
    )


def untimed(job: Job, limits: Thresholds) -> str:
    """Events with neither start nor length, or with a start that is no time."""
    return _counted(
        job,
        lambda meta: meta.untimed,
        "event(s) carry no time",
        "the profiler lost their records, so some work is missing",
    )


def overrun(job: Job, limits: Thresholds) -> str:
    """Device work that would outlast its successors on a stream that runs one after the other."""
    return _counted(
        job,
        lambda meta: meta.overrun,
        "device event(s) outlast what follows on their stream, which elsewhere runs one by one",
        "their lengths are wrong and were cut off where the next begins",
    )


def negative(job: Job, limits: Thresholds) -> str:
    """Events whose length is below zero, or no number."""
    return _counted(
        job,
        lambda meta: meta.negative,
        "event(s) have no valid length",
        "they had not ended when the recording did, and were left out",
    )
