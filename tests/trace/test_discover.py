from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from analyzer.trace.discover import Found, Skipped, find

TRACE = b'{"schemaVersion": 1, "traceEvents": []}'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, data in {
        "rank10.json": TRACE,
        "rank2.json": TRACE,
        "sub/rank0.json": TRACE,
        "sub/rank1.digest": b"digest",
        "sub/memory.json": b"[[1, 2]]",
        "empty.json": b"",
        "notes.txt": b"hello",
        ".cache/rank7.json": TRACE,
        "._rank2.json": b"\x00\x05",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path


def names(found: Found) -> list[str]:
    return [path.name for path in found.traces]


def test_a_folder_is_searched_through_and_sorted_naturally(tree: Path) -> None:
    found = find([str(tree)])
    assert names(found) == ["rank2.json", "rank10.json", "rank0.json"]
    assert [path.name for path in found.digests] == ["rank1.digest"]


def test_in_a_folder_only_candidates_by_name_are_mentioned(tree: Path) -> None:
    assert find([str(tree)]).skipped == (
        Skipped("empty.json", 0, "empty file"),
        Skipped("sub/memory.json", 8, "a PyTorch memory timeline; pass the profiler trace"),
    )


def test_a_named_file_is_judged_whatever_its_name(tree: Path) -> None:
    (tree / "trace.txt").write_bytes(TRACE)
    found = find([str(tree / "trace.txt"), str(tree / "notes.txt")])
    assert names(found) == ["trace.txt"]
    assert found.skipped == (Skipped("notes.txt", 5, "not JSON"),)


def test_a_pattern_the_shell_left_alone_is_expanded(tree: Path) -> None:
    assert names(find([str(tree / "rank*.json")])) == ["rank2.json", "rank10.json"]
    assert names(find([str(tree / "**" / "rank0.json")])) == ["rank0.json"]


def test_brackets_in_a_real_name_are_no_pattern(tree: Path) -> None:
    (tree / "rank[3].json").write_bytes(TRACE)
    assert names(find([str(tree / "rank[3].json")])) == ["rank[3].json"]


@pytest.mark.parametrize(
    "path, reason",
    [
        ("/nowhere/trace.json", "no such file or folder"),
        ("/nowhere/*.json", "no file matches this pattern"),
    ],
)
def test_a_path_that_leads_nowhere_is_skipped_with_a_reason(path: str, reason: str) -> None:
    assert find([path]) == Found((), (), (Skipped(path, None, reason),))


def test_a_folder_without_candidates_says_so(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "train.log").write_text("step 1")
    (skipped,) = find([str(tmp_path / "logs")]).skipped
    assert skipped.sentence == (
        "logs: no trace in this folder (looked for *.json, *.gz, *.zst, *.digest)"
    )


def test_a_file_reached_twice_counts_once(tree: Path) -> None:
    (tree / "link.json").symlink_to(tree / "rank2.json")
    found = find([str(tree), str(tree / "rank2.json"), str(tree / "rank*.json")])
    assert len(found.traces) == 3


def test_links_that_form_a_loop_end(tree: Path) -> None:
    (tree / "sub" / "up").symlink_to(tree, target_is_directory=True)
    assert len(find([str(tree)]).traces) == 3


def test_a_linked_folder_is_searched(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "rank5.json").write_bytes(TRACE)
    (tree / "more").symlink_to(elsewhere, target_is_directory=True)
    assert "rank5.json" in names(find([str(tree)]))


def test_a_broken_link_and_a_pipe_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.json")
    reasons = {s.name: s.reason for s in find([str(tmp_path)]).skipped}
    assert reasons == {
        "gone.json": "a broken link",
        "pipe.json": "not a regular file; write it to disk first",
    }


def test_an_unreadable_file_is_skipped_with_the_cause(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, mode: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    # Not chmod: root, as in most containers, may read everything.
    monkeypatch.setattr(Path, "open", refuse)
    assert find([str(tree / "rank2.json")]).skipped == (
        Skipped("rank2.json", len(TRACE), "cannot be read (Permission denied)"),
    )


def test_a_sentence_has_name_size_and_reason() -> None:
    assert Skipped("a.json", 12_345, "not JSON").sentence == "a.json (12,345 bytes): not JSON"
