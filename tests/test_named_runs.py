"""Which runs an argument of `ceiling compare` names."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import write_run
from sides import loading_fixed, run

from analyzer.errors import UsageError
from analyzer.report import comparison, document
from analyzer.runs import Source, sides, sources


def saved(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(document.dumps(run()))
    return path


def test_two_paths_are_before_and_after() -> None:
    found = sides(["a", "b"])
    assert (found.before, found.after) == ([Source(None, ("a",))], [Source(None, ("b",))])
    assert found.labels == ("", "")


def test_labels_stand_before_an_equals_sign() -> None:
    found = sides(["main=a", "mine=b"])
    assert found.labels == ("main", "mine")
    assert found.after == [Source(None, ("b",))]


def test_one_of_two_may_have_a_label() -> None:
    assert sides(["main=a", "b"]).labels == ("main", "")


@pytest.mark.parametrize("url", ["s3://bucket/run/", "s3://bucket/*.json.gz", "https://host/a=b"])
def test_an_address_is_left_as_it_is(url: str) -> None:
    assert sides([f"main={url}", url]).before == [Source(None, (url,))]
    assert sides([url, "b"]).labels == ("", "")


def test_a_label_given_again_names_another_run_of_the_side() -> None:
    found = sides(["main=a", "mine=b", "main=c"])
    assert [source.paths for source in found.before] == [("a",), ("c",)]
    assert [source.paths for source in found.after] == [("b",)]


@pytest.mark.parametrize(
    "arguments",
    [["a"], ["a", "b", "c"], ["m=a", "m=b"], ["m=a", "n=b", "o=c"], ["m=a", "n=b", "c"]],
)
def test_anything_else_is_refused_with_how_to_say_it(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match="do not say what is compared with what"):
        sides(arguments)


def test_a_path_that_exists_is_one_whatever_it_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "lr=3"
    folder.mkdir()
    found = sides([str(folder), f"mine={folder}"])
    assert found.before == found.after == [Source(None, (str(folder),))]
    assert found.labels == ("", "mine")


def test_a_saved_report_is_a_run(tmp_path: Path) -> None:
    path = saved(tmp_path / "main.json")
    assert sources(str(path)) == [Source(path)]


def test_a_folder_of_traces_is_one_run(tmp_path: Path) -> None:
    write_run(tmp_path)
    saved(tmp_path / "report.json")
    assert sources(str(tmp_path)) == [Source(None, (str(tmp_path),))]


def test_a_folder_of_reports_alone_is_a_run_each(tmp_path: Path) -> None:
    paths = [saved(tmp_path / f"run{n}" / "report.json") for n in (1, 2, 10)]
    (tmp_path / "compare.json").write_bytes(comparison.dumps(loading_fixed()))
    assert sources(str(tmp_path)) == [Source(path) for path in paths]


def test_a_pattern_is_a_run_for_every_folder_that_fits(tmp_path: Path) -> None:
    for name in ("run1", "run2"):
        (tmp_path / name).mkdir()
        write_run(tmp_path / name)
    found = sources(str(tmp_path / "run*"))
    assert [source.paths for source in found] == [
        (str(tmp_path / "run1"),),
        (str(tmp_path / "run2"),),
    ]


def test_traces_that_fit_a_pattern_are_the_ranks_of_one_run(tmp_path: Path) -> None:
    write_run(tmp_path)
    (found,) = sources(str(tmp_path / "rank*.json"))
    assert found.paths == (str(tmp_path / "rank0.json"), str(tmp_path / "rank1.json"))


def test_a_pattern_without_a_match_is_left_for_the_reader_to_refuse() -> None:
    assert sources("nowhere/*.json") == [Source(None, ("nowhere/*.json",))]
