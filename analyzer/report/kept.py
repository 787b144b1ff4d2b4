"""Of which ranks do rows stand in the report when there are thousands?

A report that grows with the job would no longer open. Sums and means are over all ranks; rows are
kept of the late ones, of the slowest and the fastest, and of an even choice of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np

from analyzer.ranks.pool import Job
from analyzer.report.caveats import Note
from analyzer.report.document import InputFile

MOST_RANKS = 1024
# Parts of the rows for late ranks, and at either end by time; the rest is spread evenly.
_LATE, _END = 4, 8


def ranks(job: Job, most: int = MOST_RANKS) -> list[int]:
    """The ranks with rows of their own, at most `most`, in order."""
    if len(job.ranks) <= most:
        return job.ranks
    slowest = sorted(job.ranks, key=lambda rank: (-float(job.by_rank[rank].sum()), rank))
    late = [late.rank for late in job.together.late[: most // _LATE]]
    chosen = {*late, *slowest[: most // _END], *slowest[-(most // _END) :]}
    others = [rank for rank in job.ranks if rank not in chosen]
    places = np.linspace(0, len(others) - 1, most - len(chosen)).round().astype(int)
    return sorted(chosen | {others[place] for place in places.tolist()})


def files(
    every: Sequence[InputFile], kept: Sequence[int], most: int = MOST_RANKS
) -> list[InputFile]:
    """The files of these ranks, and the first `most` of what was skipped."""
    of = set(kept)
    skipped = count(1)
    return [f for f in every if f.rank in of or (f.rank is None and next(skipped) <= most)]


def notes(job: Job, kept: Sequence[int]) -> list[Note]:
    """The caveat on rows that are not there."""
    if len(kept) == len(job.ranks):
        return []
    return [
        Note(
            "rows-left-out",
            f"Rows of {len(kept):,} of {len(job.ranks):,} ranks are listed: the late, the slowest "
            "and the fastest, and an even choice of the others. Means are over all ranks.",
        )
    ]
