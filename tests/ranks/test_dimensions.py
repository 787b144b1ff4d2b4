"""What a group of ranks is for: its name says so, or its collectives do, or it is unknown."""

from __future__ import annotations

import pytest

from analyzer.ranks.dimensions import Seen, classify


def seen(
    *,
    description: str = "",
    at: tuple[float, float] | None = None,
    one_size: bool = True,
    leading: float | None = None,
    **kinds: float,
) -> Seen:
    """A group with so many calls per step by kind; `at` is where its all-reduces lie."""
    first, last = at or (None, None)
    return Seen(description, kinds, first, last, one_size, leading)


def dimension(facts: Seen) -> str:
    return classify(facts)[0]


@pytest.mark.parametrize(
    ("description", "dimension_"),
    [
        ("TENSOR_MODEL_PARALLEL_GROUP", "tensor"),
        ("PIPELINE_MODEL_PARALLEL_GROUP", "pipeline"),
        ("EMBEDDING_GROUP", "pipeline"),
        ("DATA_PARALLEL_GROUP_WITH_CP", "data"),
        ("EXPERT_MODEL_PARALLEL_GROUP", "expert"),
        ("EXPERT_DATA_PARALLEL_GROUP", "data"),
        ("CONTEXT_PARALLEL_GROUP", "tensor"),
        ("mesh_tp", "tensor"),
        ("mesh_pp", "pipeline"),
        ("mesh_dp_replicate", "data"),
        ("mesh_dp_shard", "sharded-data"),
        ("mesh_fsdp", "sharded-data"),
    ],
)
def test_a_group_is_what_it_is_called(description: str, dimension_: str) -> None:
    facts = seen(description=description, broadcast=1)
    assert classify(facts) == (dimension_, f"its group is called {description}")


@pytest.mark.parametrize("description", ["TENSOR_AND_DATA_PARALLEL_GROUP", "MODEL_PARALLEL_GROUP"])
def test_a_name_of_several_dimensions_names_none(description: str) -> None:
    assert dimension(seen(description=description, broadcast=1)) == "unknown"


def test_a_group_for_data_that_scatters_and_gathers_is_sharded() -> None:
    facts = seen(description="DATA_PARALLEL_GROUP", reduce_scatter=4, all_gather=4)
    assert dimension(facts) == "sharded-data"


def test_all_reduces_of_the_backward_pass_are_of_data() -> None:
    assert classify(seen(all_reduce=5, at=(0.40, 0.95))) == (
        "data",
        "all-reduces, 5 per step, none of note before the backward pass",
    )


def test_however_many_there_are() -> None:
    assert dimension(seen(all_reduce=1000, at=(0.40, 0.95))) == "data"


def test_many_all_reduces_throughout_the_step_are_of_tensors() -> None:
    assert classify(seen(all_reduce=84, at=(0.13, 0.88))) == (
        "tensor",
        "all-reduces, 84 per step, spread over forward and backward",
    )


@pytest.mark.parametrize(
    "facts",
    [
        seen(all_reduce=15, at=(0.13, 0.88)),
        seen(all_reduce=84, at=(0.13, 0.88), one_size=False),
        seen(all_reduce=2, at=(0.08, 0.13)),
    ],
    ids=["few", "of many sizes", "at the start of the step"],
)
def test_other_all_reduces_are_of_nobody_knows_what(facts: Seen) -> None:
    assert classify(facts) == (
        "unknown",
        "its all-reduces are too few, or too unequal, to be told from others",
    )


def test_scattered_gradients_and_gathered_parameters_are_sharded_data() -> None:
    facts = seen(reduce_scatter=8, all_gather=16, leading=8)
    assert dimension(facts) == "sharded-data"
    assert dimension(seen(reduce_scatter=8, all_gather=8, leading=0)) == "sharded-data"


def test_scattering_after_every_gather_is_sequence_parallelism() -> None:
    assert dimension(seen(reduce_scatter=64, all_gather=96, leading=1)) == "tensor"
    assert dimension(seen(reduce_scatter=1, all_gather=1, leading=1)) == "sharded-data"


def test_dispatch_and_combine_are_of_experts() -> None:
    assert dimension(seen(dispatch=12, combine=8, all_reduce=3, at=(0.5, 0.9))) == "expert"


def test_sends_and_receives_are_of_a_pipeline() -> None:
    assert dimension(seen(send_recv=16)) == "pipeline"


def test_an_all_to_all_may_be_many_things() -> None:
    assert classify(seen(all_to_all=6, broadcast=1)) == (
        "unknown",
        "an all-to-all may move tokens, rows of embeddings or parts of a sequence",
    )
