"""No two ranks write one file, and the reader takes the rank from the name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.interop.naming import Place, file_name, place
from analyzer.trace.filenames import rank_in_name


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, Place(3, 8)),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "16"}, Place(5, 16)),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, Place(2, 4)),
        ({"RANK": "0", "SLURM_PROCID": "5"}, Place(0, None)),
        ({"LOCAL_RANK": "1", "GROUP_RANK": "0"}, Place(1, None)),
        ({}, Place(0, None)),
    ],
)
def test_the_launchers_variables_say_the_rank(environment: dict[str, str], found: Place) -> None:
    assert place(environment) == found


def test_a_local_rank_on_a_second_node_is_refused() -> None:
    with pytest.raises(ValueError, match="set RANK, too"):
        place({"LOCAL_RANK": "1", "NODE_RANK": "1"})


def test_the_name_holds_rank_size_and_dimensions_in_their_order() -> None:
    assert file_name(Place(3, 8), {"tp": 1, "pp": 0}) == "rank3-of-8_tp1_pp0.json.gz"
    assert file_name(Place(0, None), {}) == "rank0.json.gz"


@given(
    st.integers(0, 99_999),
    st.none() | st.integers(1, 99_999),
    st.dictionaries(st.sampled_from(["tp", "pp", "dp", "ep", "cp"]), st.integers(0, 999)),
)
def test_the_rank_is_read_back_from_any_name(
    rank: int, size: int | None, dimensions: dict[str, int]
) -> None:
    named = rank_in_name(file_name(Place(rank, size), dimensions))
    assert named is not None
    assert named.rank == rank


def test_a_dimension_that_would_leave_the_folder_is_refused() -> None:
    with pytest.raises(ValueError, match="is no name of a parallel dimension"):
        file_name(Place(0, 1), {"../tp": 1})
