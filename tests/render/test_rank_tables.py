from __future__ import annotations

from example import bare, example, hostile, unjoined
from example_late import two_late
from msgspec.structs import replace

from analyzer.render import rank_tables


def cells(grid: rank_tables.Grid | None) -> list[dict[str, str]]:
    assert grid is not None
    names = [head.name for head in grid.heads]
    return [dict(zip(names, row, strict=True)) for row in grid.rows]


def test_a_late_rank_has_its_cost_for_each_and_for_all() -> None:
    assert cells(rank_tables.late(two_late()))[0] == {
        "rank": "0",
        "last in": "38.1 %",
        "ms each": "219.0",
        "share": "35.0 %",
        "ms together": "1,533.0",
        "steps": "3",
        "because": "190.9 ms more of late launches than the others in the median.",
    }


def test_what_ranks_cost_that_are_not_late_stands_below_the_late_ones() -> None:
    report = two_late()
    costs = [(0, 1533.0), (6, 1219.0), (2, 171.0), (5, 80.0), (1, 76.0)]
    ranks = replace(report.ranks, late=report.ranks.late[:2], costs=costs)
    grid = rank_tables.late(replace(report, ranks=ranks))
    assert grid is not None
    assert grid.note == (
        "Others that are not late cost, together: rank 2 171.0 ms, rank 5 80.0 ms."
    )


def test_the_spread_names_the_ranks_with_least_and_most() -> None:
    grid = rank_tables.spread(two_late())
    assert grid is not None
    row = next(row for row in grid.rows if row[0] == "late launches")
    assert row == ["late launches", "14.0", "1", "14.0", "206.0", "0", "192.0"]


def test_columns_of_which_nothing_is_known_are_left_out_and_named() -> None:
    grid = rank_tables.collectives(two_late())
    assert grid is not None
    assert [head.name for head in grid.heads] == [
        *("kind", "times", "ms", "wait ms", "transfer ms", "exposed ms"),
    ]
    assert grid.note == "Not recorded: group, ranks, size. Not measurable: bus GB/s."


def test_a_single_unknown_cell_says_so() -> None:
    _, broadcast = cells(rank_tables.collectives(example()))
    assert broadcast["kind"] == "broadcast"
    assert (broadcast["size"], broadcast["wait ms"]) == ("not recorded", "not measurable")


def test_why_a_collective_was_not_measured_stands_below_the_table() -> None:
    report = example()
    rows = [replace(row, reason="sizes differ between ranks") for row in report.collectives]
    grid = rank_tables.collectives(replace(report, collectives=rows))
    assert grid is not None
    assert grid.note == "all-reduce, broadcast: sizes differ between ranks."


def test_a_slow_link_is_told_below_the_table() -> None:
    report = example()
    rows = [replace(report.collectives[0], note="40.8 GB/s of 450 that such links give.")]
    grid = rank_tables.collectives(replace(report, collectives=rows))
    assert grid is not None
    assert grid.note == "all-reduce: 40.8 GB/s of 450 that such links give."


def test_a_group_says_its_dimension_and_level_in_words() -> None:
    report = example()
    group = replace(report.ranks.groups[0], dimension="sharded-data", level="nodes", size=None)
    ranks = replace(report.ranks, groups=[group])
    (row,) = cells(rank_tables.groups(replace(report, ranks=ranks)))
    assert (row["dimension"], row["level"]) == ("sharded data", "between nodes")
    assert (row["size"], row["ranks"]) == ("not recorded", "0 to 7")


def test_every_efficiency_has_a_meaning_and_none_is_a_zero() -> None:
    rows = cells(rank_tables.efficiencies(example()))
    assert [row["efficiency"] for row in rows if not row["meaning"]] == []
    assert [row["value"] for row in rows][:4] == ["66.0 %", "97.4 %", "67.8 %", "not measurable"]


def test_parts_of_the_loss_stand_beside_their_efficiency() -> None:
    rows = cells(rank_tables.efficiencies(example()))
    assert [row["of the loss"] for row in rows][:4] == ["", "6.3 %", "93.7 %", ""]


def test_an_efficiency_this_program_does_not_know_keeps_its_name() -> None:
    report = example()
    ranks = replace(report.ranks, pop={"warp_drive": 0.5})
    (row,) = cells(rank_tables.efficiencies(replace(report, ranks=ranks)))
    assert (row["efficiency"], row["value"]) == ("warp drive", "50.0 %")


def test_the_timeline_is_told_stretch_by_stretch() -> None:
    grid = rank_tables.marks(two_late())
    assert grid is not None
    assert grid.rows[0] == [
        "0",
        "compute 0.0 to 132.0; late launches 132.0 to 338.0; wait for ranks 338.0 to 575.0; "
        "exposed transfer 575.0 to 625.0",
    ]


def test_what_is_absent_has_no_table() -> None:
    found = {name: make(bare()) for name, make in rank_tables.TABLES.items()}
    assert set(found.values()) == {None}
    assert rank_tables.late(unjoined()) is None


def test_long_names_are_shortened_in_every_cell_but_the_timeline() -> None:
    for name, make in rank_tables.TABLES.items():
        grid = make(hostile())
        if grid is not None and name != "marks":
            assert max(len(cell) for row in grid.rows for cell in row) <= 300, name
