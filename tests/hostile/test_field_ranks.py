"""Public reports O10, O11, O17, O25 to O27, O40: whose trace it is, and in which dialect."""

from __future__ import annotations

from pathlib import Path

import pytest
from field import BASE, Dialect, base, both, mean, report, same, text
from make import BASE_NS, HIP, OLD, SCENE_NS

from analyzer.errors import UnusableInput
from analyzer.render import console
from analyzer.report.document import Report


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return both(tmp_path_factory.mktemp("sound"), base(0), base(1))


def test_a_single_file_that_names_no_rank_is_rank_0(tmp_path: Path) -> None:
    """O10"""
    found = report(tmp_path, {"trace.json": base(named=False)})
    (file,) = found.run.files
    assert (file.rank, file.rank_rule) == (0, "single file")
    assert found.steps.used == [1, 2, 3]
    assert mean(found) == {"compute": 5.0, "comm_unsplit": 5.0}


def test_one_file_of_eight_ranks_says_nothing_across_ranks(tmp_path: Path) -> None:
    """O11"""
    found = report(tmp_path, {"rank0.json": base(world_size=8)})
    assert text(found, "ranks-missing").startswith("1 of 8 ranks present")
    assert found.ranks.reason == (
        "not measurable: only one rank was recorded, and waiting is for others"
    )
    assert (found.ranks.late, found.ranks.method) == ([], None)
    assert found.breakdown.mean_ms["comm_wait"] is None
    assert found.breakdown.mean_ms["comm_transfer"] is None
    assert mean(found) == {"compute": 5.0, "comm_unsplit": 5.0}
    refused = {e.id for e in found.whatif.edits if e.speedup is None}
    assert {"no-straggler", "bandwidth-x2"} <= refused
    assert "1 of 8 ranks" in console.render(found, color=False, ascii_only=True)


def test_another_base_of_time_on_one_rank_changes_nothing(tmp_path: Path, sound: Report) -> None:
    """O17"""
    moved = base(1, base_ns=BASE_NS - 86_400_000_000_000)
    assert moved.text() != base(1).text()
    assert same(both(tmp_path, base(0), moved), sound)


def test_hip_calls_stream_0_and_device_2_change_nothing(tmp_path: Path) -> None:
    """O25"""
    how = {"dialect": HIP, "device": 2, "stream": (0, 0), "call": "hipExtLaunchKernel"}
    found = both(tmp_path, base(0, **how), base(1, **how))
    assert mean(found) == BASE
    assert found.run.ranks_present == [0, 1]


def test_a_queue_in_place_of_a_stream_changes_nothing(tmp_path: Path) -> None:
    """O26"""
    ranks = [base(r).text().replace('"stream": ', '"sycl queue": ') for r in (0, 1)]
    assert mean(both(tmp_path, *ranks)) == BASE


def test_the_capitalised_categories_of_2021_change_nothing(tmp_path: Path) -> None:
    """O27"""
    dialect: Dialect = OLD
    ranks = [base(r, dialect=dialect) for r in (0, 1)]
    assert '"cat": "Kernel"' in ranks[0].text()
    assert mean(both(tmp_path, *ranks)) == BASE


def test_two_cycles_of_two_ranks_are_not_four_ranks(tmp_path: Path) -> None:
    """O40"""
    files = {}
    for rank in (0, 1):
        for cycle in (0, 1):
            name = f"host_{100 + rank}.{1_760_000_000 + 60 * cycle}.pt.trace.json"
            files[name] = base(rank, scene_ns=SCENE_NS + cycle * 60_000_000_000)
    found = report(tmp_path, files)
    assert found.run.ranks_present == [0, 1]
    assert sorted((f.rank, f.cycle) for f in found.run.files) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert found.steps.used == [1, 2, 3, 1, 2, 3]
    assert mean(found) == BASE


def test_ranks_merged_into_one_file_are_refused_with_the_cause(tmp_path: Path) -> None:
    """A5, TraceLens #202: correlations and streams of several ranks are the same numbers."""
    merged = base(0)
    merged.events += [e.replace("4242", "777") for e in base(1).events]
    with pytest.raises(UnusableInput, match="it holds the operators of several processes"):
        report(tmp_path, {"merged.json": merged})
