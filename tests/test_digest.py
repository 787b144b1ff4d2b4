"""A digest is complete, small, and the same again after it was saved."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest
from analysed import windows
from make import SCENE_NS, TraceBuilder, trace
from real_traces import real_trace

from analyzer.config import Settings
from analyzer.digest import DIGEST_VERSION, STRIP_BINS, RankDigest, digest, load, save
from analyzer.errors import UnusableInput

SAMPLE = Path(__file__).parent.parent / "sample_traces" / "loader-bound-4gpu" / "rank1.json.gz"


@pytest.fixture(scope="module")
def sample() -> RankDigest:
    return digest(SAMPLE, Settings())


def refusal(path: Path) -> str:
    with pytest.raises(UnusableInput) as caught:
        load(path)
    assert caught.value.hint
    return caught.value.message


def test_a_saved_digest_is_the_same_again(tmp_path: Path, sample: RankDigest) -> None:
    save(sample, tmp_path / "rank1.digest")
    assert load(tmp_path / "rank1.digest") == sample


def test_the_same_trace_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(digest(SAMPLE, Settings()), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_digest_of_another_version_is_refused(tmp_path: Path, sample: RankDigest) -> None:
    save(msgspec.structs.replace(sample, version=DIGEST_VERSION + 1), tmp_path / "new.digest")
    message = f"new.digest: digest version {DIGEST_VERSION + 1}, this program reads 4"
    assert refusal(tmp_path / "new.digest") == message


def test_a_newer_layout_is_refused_by_its_version_not_by_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "new.digest"
    path.write_bytes(gzip.compress(msgspec.msgpack.encode({"version": 99, "rows": "other"})))
    assert "digest version 99" in refusal(path)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"not compressed", id="not compressed"),
        pytest.param(gzip.compress(b"{}"), id="a trace"),
        pytest.param(gzip.compress(msgspec.msgpack.encode({"rank": 1})), id="other MessagePack"),
        pytest.param(
            gzip.compress(msgspec.msgpack.encode({"version": DIGEST_VERSION})), id="fields missing"
        ),
        pytest.param(gzip.compress(bytes(range(256)) * 8)[:-30], id="cut off"),
        pytest.param(b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 40, id="damaged inside"),
    ],
)
def test_a_foreign_or_damaged_file_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "thing.digest"
    path.write_bytes(content)
    assert refusal(path).startswith("thing.digest: not a digest of this program")


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match=r"^gone\.digest: cannot be read"):
        load(tmp_path / "gone.digest")


def test_the_largest_real_trace_gives_less_than_a_megabyte(tmp_path: Path) -> None:
    trace_file = real_trace("tracelens-sd35-mi300/profile_trace_rank_0.json.gz")
    path = tmp_path / "rank.digest"
    save(digest(trace_file, Settings()), path)
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize(
    "scene",
    [
        pytest.param(trace(), id="no events"),
        pytest.param(trace().python("train.py(3): main", 0, 9), id="Python frames only"),
        pytest.param(trace().gpu_annotation("ProfilerStep#1", 0, 9), id="projected marks only"),
    ],
)
def test_a_trace_without_work_is_refused_with_its_size(tmp_path: Path, scene: TraceBuilder) -> None:
    path = scene.write(tmp_path / "rank0.json")
    with pytest.raises(UnusableInput, match=rf"^rank0.json \({path.stat().st_size:,} bytes\)"):
        digest(path, Settings())


def test_only_steps_that_were_not_dropped_are_used(sample: RankDigest) -> None:
    assert [s.index for s in sample.steps] == [10, 11, 12, 13, 14, 15]
    assert [s.index for s in sample.used] == [11, 12, 13, 14, 15]


def test_classes_of_every_step_and_of_the_recording_sum_to_their_window(
    sample: RankDigest,
) -> None:
    for window in windows(sample):
        assert sum(window.ns.values()) == window.end - window.start


def test_the_file_says_whose_digest_it_is(sample: RankDigest) -> None:
    assert (sample.meta.name, sample.meta.rank, sample.meta.world_size) == ("rank1.json.gz", 1, 4)
    assert (sample.version, sample.timeline, sample.marked) == (DIGEST_VERSION, "device", True)


def test_where_only_communication_runs_is_kept(tmp_path: Path) -> None:
    scene = trace().kernel("gemm", 0, 100).collective("allreduce", 80, 150)
    path = scene.collective("allreduce", 200, 230).write(tmp_path / "rank0.json")
    found = digest(path, Settings())
    spans = [((a - SCENE_NS) / 1000, (b - SCENE_NS) / 1000) for a, b in found.exposed_comm]
    assert spans == [(100, 150), (200, 230)]


def test_where_only_communication_runs_sums_to_its_class(sample: RankDigest) -> None:
    exposed = sum(end - start for start, end in sample.exposed_comm)
    assert exposed == sample.span.ns["comm_unsplit"] > 0


def test_the_strip_is_the_middle_step_by_what_most_of_each_stretch_is(tmp_path: Path) -> None:
    scene = trace()
    for number in range(4):
        at = 960 * number
        scene.step(number, at, at + 960).kernel("gemm", at, at + 720, launch=(at, at + 1))
        scene.collective("allreduce", at + 720, at + 960, launch=(at + 2, at + 3))
    strip = digest(scene.write(tmp_path / "rank0.json"), Settings()).strip
    assert strip is not None
    assert (strip.step, strip.start, strip.end) == (2, SCENE_NS + 1_920_000, SCENE_NS + 2_880_000)
    quarter = STRIP_BINS // 4
    assert strip.classes == ["compute"] * 3 * quarter + ["comm_unsplit"] * quarter


def test_without_a_device_no_share_of_its_work_is_unlinked(tmp_path: Path) -> None:
    path = trace().op("aten::mm", 0, 50).write(tmp_path / "cpu.json")
    assert digest(path, Settings()).unlinked_share is None
