"""What must be the same on both sides, and what is worth a warning."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from sides import collective, compared, kernel, run

from analyzer.report.comparable import RULES, differences
from analyzer.report.document import Flags, Report


def told(before: Report, after: Report) -> dict[str, bool]:
    """Id of what differs -> whether it blocks."""
    return {row.id: row.blocking for row in differences(before, after)}


def test_equal_runs_do_not_differ() -> None:
    assert told(run(), run()) == {}


@pytest.mark.parametrize(
    ("fact", "value", "id", "blocks"),
    [
        ("world_size", 16, "world-size", True),
        ("ranks_present", [3], "ranks-present", False),
        ("gpu", "AMD Instinct MI300X", "gpu", False),
        ("backend", "gloo", "backend", False),
        ("torch", "2.10.0", "torch", False),
        ("strategy", ["FSDP"], "strategy", False),
    ],
)
def test_a_fact_of_the_run_that_differs(fact: str, value: Any, id: str, blocks: bool) -> None:
    assert told(run(), run(**{fact: value})) == {id: blocks}


@pytest.mark.parametrize("fact", ["gpu", "backend", "torch"])
def test_what_one_side_does_not_say_is_no_difference(fact: str) -> None:
    assert told(run(), run(**{fact: None})) == {}


def test_an_unknown_size_is_that_of_the_ranks_recorded() -> None:
    alone = run(world_size=None, ranks_present=[0])
    assert told(alone, run(world_size=1)) == {}
    assert told(alone, run(world_size=8)) == {"world-size": True}


def test_flags_that_differ_are_named() -> None:
    quiet = Flags(with_stack=False, profile_memory=False, record_shapes=False)
    loud = Flags(with_stack=True, profile_memory=False, record_shapes=True)
    (row,) = differences(run(flags=quiet), run(flags=loud))
    assert (row.id, row.before, row.after) == ("flags", "none", "stacks, shapes")


def test_steps_cut_otherwise_block() -> None:
    other = run()
    assert told(run(), replace(other, steps=replace(other.steps, rule="one step"))) == {
        "step-rule": True
    }


def test_a_host_and_a_device_timeline_block() -> None:
    other = run()
    host = replace(other, breakdown=replace(other.breakdown, timeline="host"))
    assert told(run(), host) == {"timeline": True}


@pytest.mark.parametrize(
    ("count", "mbytes", "differs"), [(6.0, 140.0, False), (6.0, 142.0, False), (6.0, 70.0, True),
                                     (12.0, 70.0, True)]
)  # fmt: skip
def test_other_collectives_warn_where_they_differ_by_more_than_two_percent(
    count: float, mbytes: float, differs: bool
) -> None:
    other = replace(run(), collectives=[collective(count, mbytes)])
    assert told(run(), other) == ({"collectives": False} if differs else {})


def test_what_is_exchanged_is_told_in_numbers() -> None:
    other = replace(run(), collectives=[collective(12.0, 70.0)])
    (row,) = differences(run(), other)
    assert row.before == "6.0 all-reduce of 8 (840.0 MB)"
    assert row.after == "12.0 all-reduce of 8 (840.0 MB)"


def test_another_batch_warns_where_shapes_were_recorded() -> None:
    shapes = {
        n: {f"aten::mm [[{n}, 512], [512, 512]]": 0.9, "aten::bmm [[1]]": 0.1} for n in (64, 32)
    }
    assert told(run(shapes=shapes[64]), run(shapes=shapes[64])) == {}
    assert told(run(shapes=shapes[64]), run()) == {}
    (row,) = differences(run(shapes=shapes[64]), run(shapes=shapes[32]))
    assert (row.id, row.blocking) == ("shapes", False)
    assert (row.before, row.after) == (
        "aten::mm [[64, 512], [512, 512]]",
        "aten::mm [[32, 512], [512, 512]]",
    )


def test_other_kernels_warn() -> None:
    other = replace(run(), kernels=[kernel("triton", 10.0, 40.0), kernel("softmax", 20.0, 20.0)])
    (row,) = differences(run(), other)
    assert (row.id, row.blocking) == ("kernels", False)
    assert row.why.startswith("33 % of the shorter kernel time is in names both have")


def test_runs_of_one_side_that_differ_are_told() -> None:
    found = compared([run(), run(torch="2.10.0")], run())
    (row,) = found.comparable.differences
    assert row.id == "torch"
    assert row.why.startswith("the runs of before are not alike")


def test_a_run_of_another_size_inside_a_side_blocks() -> None:
    assert not compared([run(), run(world_size=16), run()], run()).comparable.ok


def test_every_rule_says_what_a_difference_does() -> None:
    assert all(rule.why and rule.title for rule in RULES)
    assert len({rule.id for rule in RULES}) == len(RULES)
