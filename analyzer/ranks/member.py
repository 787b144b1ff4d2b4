"""One digest, whose it is, and what joining the ranks says about its collectives."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.digest import RankDigest
from analyzer.trace.schema import Int64

# No time of a trace; a column of numbers, since a large job has millions of collectives.
NO_TURN = -(2**60)


@dataclass(frozen=True)
class Member:
    """A digest with its rank and cycle.

    `turns` says where waiting for others ends in each of the digest's collectives, ns, NO_TURN in
    those that were not joined; None while none was.
    """

    rank: int
    cycle: int
    digest: RankDigest
    turns: Int64 | None = None
