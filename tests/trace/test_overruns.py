"""Impossible lengths are cut off where the stream goes on; what may be true is left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from analysed import read
from make import TraceBuilder, trace

from analyzer.trace.overruns import clamped


def stream(
    lengths: dict[int, int] | None = None, *, count: int = 40, every: int = 1000
) -> TraceBuilder:
    """Kernels of one name on one stream, `every` us one; `lengths` (us) of some by number."""
    built = trace()
    for i in range(count):
        length = (lengths or {}).get(i, every)
        built.kernel("gemm", i * every, i * every + length, launch=(i, i))
    return built


def cut(built: TraceBuilder, folder: Path) -> tuple[int, list[int]]:
    """How many were cut off, and all lengths in us."""
    found = clamped(read(built, folder))
    return found.meta.overrun, (found.device.dur // 1000).tolist()


def test_a_length_beyond_the_next_event_ends_where_that_begins(tmp_path: Path) -> None:
    assert cut(stream({7: 3_000_000}), tmp_path) == (1, [1000] * 40)


def test_two_in_a_row_are_both_cut_off(tmp_path: Path) -> None:
    count, lengths = cut(stream({7: 3_000_000, 8: 2_000_000}), tmp_path)
    assert (count, lengths) == (2, [1000] * 40)


def test_the_last_of_a_stream_has_no_successor_to_be_held_against(tmp_path: Path) -> None:
    assert cut(stream({39: 3_000_000}), tmp_path)[0] == 0


def overlapping_often(built: TraceBuilder) -> None:
    for i in range(40):
        built.kernel("other", i * 1000 + 100, i * 1000 + 200, launch=(i, i))


def one_long_collective(built: TraceBuilder) -> None:
    for i in range(3):
        built.kernel("nccl", 10_000 * i + 5, 10_000 * i + 8005, launch=(i, i))


def launched_by_one_graph(built: TraceBuilder) -> None:
    built.runtime("cudaGraphLaunch", 0, 1, correlation=900)
    for i in range(20):
        built.kernel("gemm", 50, 20_000 + i, correlation=900)


def beginning_together(built: TraceBuilder) -> None:
    built.kernel("gemm", 40_000, 60_000, launch=(1, 1)).kernel(
        "gemm", 40_000, 41_000, launch=(2, 2)
    )


def a_little(built: TraceBuilder) -> None:
    built.kernel("gemm", 40_000, 40_900, launch=(1, 1)).kernel(
        "gemm", 40_100, 40_200, launch=(2, 2)
    )


def on_another_stream(built: TraceBuilder) -> None:
    built.kernel("gemm", 5, 30_000, launch=(1, 1), stream=9)


@pytest.mark.parametrize(
    "add",
    [
        overlapping_often,
        one_long_collective,
        launched_by_one_graph,
        beginning_together,
        a_little,
        on_another_stream,
    ],
)
def test_true_overlap_on_a_stream_is_left_alone(
    add: Callable[[TraceBuilder], None], tmp_path: Path
) -> None:
    built = stream()
    add(built)
    found = read(built, tmp_path)
    assert clamped(found) is found


def test_a_stream_of_few_events_is_not_known_to_be_serial(tmp_path: Path) -> None:
    assert cut(stream({2: 3_000_000}, count=10), tmp_path)[0] == 0
