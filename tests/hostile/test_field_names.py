"""Public reports O18 to O22, O24, O38: what a name, a category or an argument says."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from field import BASE, NCCL, base, both, mean, report, text, told
from make import TraceBuilder

from analyzer.ranks.unknown import ON_THE_HOST_ONLY
from analyzer.render import console, html, markdown
from analyzer.report.document import Report

SCRIPT = "gemm</script><img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "all_reduce"),
        ("NCCLDEVKERNEL_ALLREDUCE_SUM_F32_RING_LL", "all_reduce"),
        ("ncclDevKernel_Generic", "unspecified"),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "unspecified"),
    ],
)
def test_collectives_of_every_nccl_are_communication(name: str, kind: str, tmp_path: Path) -> None:
    """O18"""
    how = {"comm": name, "comm_args": False}
    found = both(tmp_path, base(0, **how), base(1, **how))
    parts = mean(found)
    assert (parts["compute"], sum(parts.values())) == (5.5, 10.0)
    assert found.breakdown.group_ms["communication"] == pytest.approx(4.5)
    assert {row.kind for row in found.collectives} == {kind}


def host_only(built: TraceBuilder, k: int, at: int) -> None:
    built.op("nccl:all_reduce", at + 50, at + 900)


def test_collectives_on_the_host_alone_are_no_measure_of_communication(tmp_path: Path) -> None:
    """O19"""
    how = {"comm": None, "each": host_only}
    found = both(tmp_path, base(0, **how), base(1, **how))
    assert text(found, "no-collectives") == (
        "A run of 2 ranks, but collectives on the host only were recorded: communication on the "
        "device is not measured, not zero."
    )
    parts = found.breakdown
    assert [parts.mean_ms[c] for c in parts.groups["communication"]] == [None, None, None]
    assert (parts.group_ms["communication"], parts.hidden_comm_ms) == (None, None)
    assert ON_THE_HOST_ONLY in parts.reason
    refused = {e.id: e.reason for e in found.whatif.edits if e.speedup is None}
    assert refused["no-communication"] == refused["bandwidth-x2"] == ON_THE_HOST_ONLY
    words = html.render(found) + markdown.comment(found)
    assert "No communication runs beside compute" not in words


def test_an_all_reduce_of_a_serving_engine_on_the_compute_stream_is_communication(
    tmp_path: Path,
) -> None:
    """O20"""
    name = "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*)"
    how = {"comm": name, "comm_args": False, "stream": (7, 7)}
    found = both(tmp_path, base(0, **how), base(1, **how))
    assert found.breakdown.group_ms["communication"] == pytest.approx(4.5)
    assert mean(found)["compute"] == 5.5


def test_a_kernel_that_reduces_and_normalises_has_a_class_of_its_own(tmp_path: Path) -> None:
    """O21"""
    name = "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel<2>(int)"
    how = {"comm": name, "comm_args": False}
    found = both(tmp_path, base(0, **how), base(1, **how))
    assert sum(mean(found).values()) == pytest.approx(10.0)
    assert found.breakdown.group_ms["communication"] == pytest.approx(4.5)
    assert text(found, "fused-kernels").startswith("4.75 ms per step run in kernels that ")


def gathering(built: TraceBuilder, k: int, at: int) -> None:
    built.op("c10d::_allgather_base_", at + 50, at + 60)
    built.copy("DtoD", at + 5020, at + 10_020, launch=(at + 52, at + 55), stream=9)


def test_copies_that_an_all_gather_launched_are_communication(tmp_path: Path) -> None:
    """O22"""
    found = report(tmp_path, {"rank0.json": base(comm=None, each=gathering)})
    assert mean(found) == {"compute": 5.0, "comm_unsplit": 5.0}


def by_category(built: TraceBuilder, k: int, at: int) -> None:
    how = {"stream": 9, "call": "hipMemcpyAsync"}
    built.copy("CopyDeviceToDevice", at + 5020, at + 8020, launch=(at + 52, at + 55), **how)
    built.memset(at + 8020, at + 10_020, launch=(at + 56, at + 57), stream=9)


def by_name(built: TraceBuilder, k: int, at: int) -> None:
    how = {"stream": 9, "call": "hipMemcpyAsync"}
    name, fill = "__amd_rocclr_copyBuffer", "__amd_rocclr_fillBufferAligned"
    built.kernel(name, at + 5020, at + 8020, launch=(at + 52, at + 55), **how)
    built.kernel(fill, at + 8020, at + 10_020, launch=(at + 56, at + 57), stream=9)


def test_copies_filed_under_kernels_equal_their_twins_under_copies(tmp_path: Path) -> None:
    """O24"""
    found = [
        report(tmp_path / each.__name__, {"rank0.json": base(world_size=1, comm=None, each=each)})
        for each in (by_category, by_name)
    ]
    assert mean(found[0]) == mean(found[1]) == {"compute": 5.0, "copy": 5.0}


class Elements(HTMLParser):
    """What a page holds besides text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def scripted(tmp_path: Path) -> tuple[Report, Report]:
    ranks = [base(r).text().replace("sm90_xmma_gemm", SCRIPT) for r in (0, 1)]
    sound = both(tmp_path / "sound", base(0), base(1))
    return both(tmp_path / "scripted", *ranks), sound


def test_a_name_with_a_closing_script_tag_is_shown_as_text(tmp_path: Path) -> None:
    """O38"""
    found, sound = scripted(tmp_path)
    assert mean(found) == BASE
    assert any(SCRIPT in kernel.name for kernel in found.kernels)
    tags = [tag for tag, _ in Elements(html.render(found)).found]
    assert tags.count("script") == [t for t, _ in Elements(html.render(sound)).found].count(
        "script"
    )
    assert "img" not in tags
    assert not any(key.startswith("on") for _, a in Elements(html.render(found)).found for key in a)
    assert "<img" not in markdown.comment(found)
    assert "\x1b" not in console.render(found, color=False, ascii_only=True)


def test_a_disagreeing_name_of_a_collective_gives_way_to_its_metadata(tmp_path: Path) -> None:
    """A6: the kernel of one collective can run another; only its arguments say which."""
    ranks = [base(r, comm=NCCL.replace("AllReduce", "Broadcast")) for r in (0, 1)]
    found, sound = both(tmp_path / "a", *ranks), both(tmp_path / "b", base(0), base(1))
    assert {row.kind for row in found.collectives} == {"all_reduce"}
    assert found.collectives == sound.collectives
    assert found.breakdown == sound.breakdown


def test_a_file_of_which_name_and_content_say_different_ranks_is_told(tmp_path: Path) -> None:
    """A2, A6: the content decides."""
    found = report(tmp_path, {"rank0.json": base(0), "rank5.json": base(1)})
    assert found.run.ranks_present == [0, 1]
    assert mean(found) == BASE
    assert text(found, "rank-disputed") == (
        "1 file(s) say two ranks: rank5.json is taken for rank 1 by distributedInfo, but its name "
        "says rank 5."
    )
    assert "rank-disputed" not in told(both(tmp_path / "sound", base(0), base(1)))
