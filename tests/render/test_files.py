"""Which file gets which painting, and that a file is whole or untouched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from analyzer.errors import UsageError
from analyzer.render import files


def test_a_folder_gets_one_file_for_each_format() -> None:
    assert files.plan(Path("out"), []) == {
        Path("out/report.html"): "html",
        Path("out/report.json"): "json",
        Path("out/report.md"): "markdown",
    }


def test_a_folder_gets_only_the_formats_asked_for() -> None:
    assert files.plan(Path("out"), ["json"]) == {Path("out/report.json"): "json"}


@pytest.mark.parametrize(
    ("name", "format_"),
    [("a.html", "html"), ("a.HTM", "html"), ("a.json", "json"), ("a.md", "markdown")],
)
def test_a_suffix_names_the_format(name: str, format_: str) -> None:
    assert files.plan(Path(name), []) == {Path(name): format_}
    assert files.plan(Path(name), [format_]) == {Path(name): format_}


def test_a_file_of_another_format_than_asked_for_is_refused() -> None:
    with pytest.raises(UsageError, match=r"a\.html holds one format, json was asked for"):
        files.plan(Path("a.html"), ["json"])


def test_an_existing_file_is_refused_unless_forced(tmp_path: Path) -> None:
    old = tmp_path / "report.md"
    old.write_text("old")
    with pytest.raises(UsageError, match=r"^already in .*: report\.md$"):
        files.check([old, tmp_path / "report.html"], force=False)
    files.check([old], force=True)


def test_a_file_is_written_as_utf_8_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "report.md"
    files.write({path: files.encoded("\u00b5s\n")})
    assert path.read_bytes() == b"\xc2\xb5s\n"


def test_half_a_surrogate_pair_is_written_as_a_question_mark() -> None:
    assert files.encoded("rank\ud800") == b"rank?"


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
def test_everybody_may_read_a_written_file(tmp_path: Path) -> None:
    files.write({tmp_path / "report.md": b"text"})
    assert (tmp_path / "report.md").stat().st_mode & 0o777 == 0o644


def test_a_file_that_cannot_be_replaced_stays_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.md"
    path.write_text("old")

    def full(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(UsageError, match=r"report\.md: cannot be written \(No space left"):
        files.write({path: b"new"})
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(UsageError, match="cannot be written"):
        files.write({tmp_path / "out" / "report.md": b"text"})
