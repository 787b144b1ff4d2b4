"""Which parallel dimension does a group of ranks serve? Rules as data, each with what shows it.

A group is recognised by what it is called, else by its collectives: their kinds, how many there are
per step, and where in the step they stand. What fits no rule is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

DATA, SHARDED, TENSOR, PIPELINE, EXPERT, UNKNOWN = (
    *("data", "sharded-data", "tensor", "pipeline", "expert", "unknown"),
)
# `first` over `last`: all-reduces spread evenly over forward and backward give 0.11, over the
# backward pass alone (two thirds of both) 0.43.
BACKWARD_ONLY = 0.3
# Tensor parallelism reduces at least once a layer in each pass; fewer may be anything.
MANY = 16
# Sequence parallelism scatters after one gather, many times; sharded data gathers the parameters of
# all its units before the first gradient is scattered.
LEADING_GATHERS = 2
MANY_SCATTERS = 8
ONE_SIZE_SHARE = 0.8


@dataclass(frozen=True)
class Seen:
    """What a group does: calls per rank and step by kind, and how its calls lie in the step.

    `first` and `last` are where in the step (0 to 1) the first tenth of the all-reduces has started
    and the last tenth begins to; `leading` is how many all-gathers come before the first
    reduce-scatter. None where there are none.
    """

    description: str
    kinds: Mapping[str, float]
    first: float | None
    last: float | None
    one_size: bool
    leading: float | None

    def count(self, kind: str) -> float:
        """Calls of the kind per rank and step."""
        return self.kinds.get(kind, 0.0)


@dataclass(frozen=True)
class Rule:
    """A dimension, what shows it (with the facts of Seen), and the test."""

    dimension: str
    because: str
    fits: Callable[[Seen], bool]


def _shards(seen: Seen) -> bool:
    return seen.count("reduce_scatter") > 0 and seen.count("all_gather") > 0


def _sequence(seen: Seen) -> bool:
    few_leading = seen.leading is not None and 1 <= seen.leading <= LEADING_GATHERS
    return _shards(seen) and few_leading and seen.count("reduce_scatter") >= MANY_SCATTERS


def _backward_only(seen: Seen) -> bool | None:
    """None where all-reduces end in the first half of the step: no gradient is ready there."""
    if seen.first is None or seen.last is None or seen.last < 0.5:
        return None
    return seen.first >= BACKWARD_ONLY * seen.last


RULES = (
    Rule(
        EXPERT,
        "tokens are dispatched to experts and combined again",
        lambda s: s.count("dispatch") + s.count("combine") > 0,
    ),
    Rule(
        PIPELINE,
        "ranks send to each other and receive, as the stages of a pipeline do",
        lambda s: s.count("send_recv") > 0,
    ),
    Rule(
        TENSOR,
        "reduce-scatters and all-gathers alternate from the start of the step, as activations do "
        "in sequence parallelism",
        _sequence,
    ),
    Rule(
        SHARDED,
        "gradients are scattered ({scatters:.3g} reduce-scatters per step) and parameters gathered "
        "({gathers:.3g} all-gathers)",
        _shards,
    ),
    Rule(
        DATA,
        "all-reduces, {reductions:.3g} per step, none of note before the backward pass",
        lambda s: _backward_only(s) is True,
    ),
    Rule(
        TENSOR,
        "all-reduces, {reductions:.3g} per step, spread over forward and backward",
        lambda s: _backward_only(s) is False and s.count("all_reduce") >= MANY and s.one_size,
    ),
)
# Why a group whose most frequent kind is this remains unknown.
UNKNOWN_BECAUSE = {
    "all_to_all": "an all-to-all may move tokens, rows of embeddings or parts of a sequence",
    "unspecified": "its kernels do not say which operation they run",
    "all_reduce": "its all-reduces are too few, or too unequal, to be told from others",
}
# Words in the description of a group, as training frameworks give it; the first that is found.
WORDS = (
    (DATA, r"data|dp|ddp|replicate"),
    (SHARDED, r"fsdp|shard|zero"),
    (EXPERT, r"expert|ep|moe"),
    (PIPELINE, r"pipeline|pp|embedding"),
    (TENSOR, r"tensor|tp|sequence|sp|context|cp"),
)


def classify(facts: Seen) -> tuple[str, str]:
    """Dimension and what shows it: the group's description first, then the rules."""
    named = _named(facts.description)
    if named == DATA and _shards(facts):
        named = SHARDED
    if named:
        return named, f"its group is called {facts.description}"
    for rule in RULES:
        if rule.fits(facts):
            return rule.dimension, rule.because.format(
                reductions=facts.count("all_reduce"),
                scatters=facts.count("reduce_scatter"),
                gathers=facts.count("all_gather"),
            )
    most = max(facts.kinds, key=lambda kind: facts.kinds[kind])
    return UNKNOWN, UNKNOWN_BECAUSE.get(most, "its collectives fit no dimension alone")


def _named(description: str) -> str:
    """The dimension a description names, "" for none. Groups of data and another are of data: they
    hold what is replicated beside it (experts' gradients, data with context).
    """
    words = set(re.split(r"[^a-z]+", description.lower()))
    if {"tensor", "data"} <= words:
        # Megatron's TENSOR_AND_DATA_PARALLEL_GROUP spans both and is neither.
        return ""
    for dimension, pattern in WORDS:
        if any(re.fullmatch(pattern, word) for word in words):
            return SHARDED if dimension == DATA and words & {"fsdp", "shard"} else dimension
    return ""
