"""One digest and whose it is."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.digest import RankDigest


@dataclass(frozen=True)
class Member:
    """A digest with its rank and cycle."""

    rank: int
    cycle: int
    digest: RankDigest
