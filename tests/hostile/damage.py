"""The healthy run as file contents that a test can damage, and what a report says about it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from make import TraceBuilder, pack
from runs import CREATED, healthy

from analyzer import api
from analyzer.config import Settings
from analyzer.report.build import Request
from analyzer.report.document import Report


def text_of(rank: int = 1) -> str:
    """One rank of the healthy run, with a Python frame and a copy that a test may spoil."""
    return built(rank).text()


def built(rank: int = 1) -> TraceBuilder:
    """The same before it is written."""
    made = healthy(rank).python("train.py(3): NAME", 1, 900)
    return made.copy("HtoD", 30, 30, launch=(26, 27), args={"bandwidth": 77.5, "bytes": 0})


def report(folder: Path, files: Mapping[str, bytes | str]) -> Report:
    """The report on files given by name; packed as their suffix says."""
    for name, data in files.items():
        pack(folder / name, data.encode() if isinstance(data, str) else data)
    return api.analyze([str(folder)], Request("mine", CREATED), Settings(), jobs=1)


def with_rank1(folder: Path, rank1: bytes | str, suffix: str = ".json") -> Report:
    """The report on a sound rank 0 and this rank 1."""
    return report(folder, {"rank0.json": text_of(0), f"rank1{suffix}": rank1})


def numbers(found: Report) -> object:
    """Every number of the report that a damaged name must not move."""
    return found.steps, found.breakdown, found.scaling, found.collectives, found.findings


def caveat(found: Report, id: str) -> str:
    """The text of the caveat of that id; fails where it is not told, or twice."""
    (text,) = (c.text for c in found.quality if c.id == id)
    return text
