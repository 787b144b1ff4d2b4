"""Many files: the same digests wherever they are made, in the order given, each failing alone."""

from __future__ import annotations

import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest
from runs import healthy, write_run

from analyzer.config import Settings
from analyzer.digest import digest
from analyzer.errors import AnalyzerError
from analyzer.fleet import Outcome, digest_all, in_memory


def traces(folder: Path, ranks: int) -> list[Path]:
    write_run(folder, ranks)
    return [folder / f"rank{r}.json" for r in range(ranks)]


class Killed(Executor):
    """Its workers die after `good` files, or before the rest can be handed to it."""

    def __init__(self, good: int, *, at_submit: bool = False) -> None:
        self.good = good
        self.at_submit = at_submit

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.good -= 1
        if self.good >= 0:
            future.set_result(fn(*args, **kwargs))
        elif self.at_submit:
            raise BrokenProcessPool("a worker is gone")
        else:
            future.set_exception(BrokenProcessPool("a worker is gone"))
        return future


def test_an_outcome_holds_the_digest_of_its_file(tmp_path: Path) -> None:
    (path,) = traces(tmp_path, 1)
    assert digest_all([path], Settings()) == [Outcome(path, digest(path, Settings()))]


def test_spawned_processes_give_the_same_digests_as_this_one(tmp_path: Path) -> None:
    paths = traces(tmp_path, 3)[::-1]
    assert digest_all(paths, Settings(), jobs=2) == digest_all(paths, Settings(), jobs=1)


def test_outcomes_come_in_the_order_given(tmp_path: Path) -> None:
    paths = traces(tmp_path, 4)
    given = [paths[2], paths[0], paths[3], paths[1]]
    with ThreadPoolExecutor(4) as executor:
        found = digest_all(given, Settings(), executor=executor)
    assert [o.path for o in found] == given
    assert [o.digest.meta.rank for o in found if o.digest] == [2, 0, 3, 1]


def test_an_executor_of_the_caller_does_the_work(tmp_path: Path) -> None:
    used = set()

    class Watched(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            used.add(args[0])
            return super().submit(fn, *args, **kwargs)

    paths = traces(tmp_path, 2)
    with Watched(1) as executor:
        found = digest_all(paths, Settings(), executor=executor)
    assert used == set(paths)
    assert found == digest_all(paths, Settings(), jobs=1)


@pytest.mark.parametrize("jobs", [1, 2])
def test_one_bad_file_does_not_stop_the_others(jobs: int, tmp_path: Path) -> None:
    paths = traces(tmp_path, 2)
    bad = tmp_path / "bad.json"
    bad.write_text('{"traceEvents": []}')
    found = digest_all([paths[0], bad, paths[1]], Settings(), jobs=jobs)
    assert [o.digest is None for o in found] == [False, True, False]
    assert found[1].error == "bad.json (19 bytes): no trace events in it"
    assert found[1].hint == "pass the file that torch.profiler exported"


def test_a_file_that_is_gone_is_an_outcome_too(tmp_path: Path) -> None:
    (found,) = digest_all([tmp_path / "gone.json"], Settings())
    assert found.error == "gone.json: cannot be read (No such file or directory)"


def test_progress_is_told_once_for_each_file_good_or_bad(tmp_path: Path) -> None:
    paths = [*traces(tmp_path, 2), tmp_path / "gone.json"]
    here: list[Path] = []
    digest_all(paths, Settings(), jobs=1, progress=here.append)
    assert here == paths
    elsewhere: list[Path] = []
    with ThreadPoolExecutor(2) as executor:
        digest_all(paths, Settings(), executor=executor, progress=elsewhere.append)
    assert sorted(elsewhere) == sorted(paths)


def test_progress_is_told_in_the_thread_that_asked(tmp_path: Path) -> None:
    threads = set()
    with ThreadPoolExecutor(2) as executor:
        digest_all(
            traces(tmp_path, 3),
            Settings(),
            executor=executor,
            progress=lambda path: threads.add(threading.current_thread()),
        )
    assert threads == {threading.current_thread()}


@pytest.mark.parametrize("at_submit", [False, True])
def test_a_killed_worker_is_one_sentence_with_what_is_left(at_submit: bool, tmp_path: Path) -> None:
    paths = traces(tmp_path, 2)
    with pytest.raises(AnalyzerError) as failed:
        digest_all(paths, Settings(), executor=Killed(1, at_submit=at_submit))
    assert "rank1.json" in failed.value.message
    assert failed.value.message.endswith("was killed (out of memory?)")
    assert "--jobs 1" in failed.value.hint
    assert failed.value.exit_code == 70


def test_no_files_give_no_outcomes() -> None:
    assert digest_all([], Settings()) == []


def test_settings_reach_every_worker(tmp_path: Path) -> None:
    built = healthy(0, 1, without=["marks", "collectives"])
    for k in range(7):
        built.annotation(f"train {k}", k * 1000, k * 1000 + 1000)
    path = built.write(tmp_path / "rank0.json")
    (found,) = digest_all([path, path], Settings(step_pattern=r"train (\d+)"), jobs=2)[:1]
    assert found.digest is not None
    assert [s.index for s in found.digest.steps] == [0, 1, 2, 3, 4, 5, 6]


def sparse(path: Path, size: int) -> Path:
    """A file of this size that takes no room."""
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_as_many_files_are_read_at_once_as_fit_into_memory(tmp_path: Path) -> None:
    # From above: 100 MiB each, and 9 bytes for each byte of an archive.
    paths = [sparse(tmp_path / f"rank{r}.json.gz", 100 * 1024**2) for r in range(4)]
    assert in_memory(paths, 1000 * 1024**2) == 1
    assert in_memory(paths, 2000 * 1024**2) == 2
    assert in_memory(paths, 10**12) == 4


def test_the_largest_files_may_be_read_together(tmp_path: Path) -> None:
    paths = [sparse(tmp_path / f"rank{r}.json.gz", r * 100 * 1024**2) for r in range(4)]
    assert in_memory(paths, 2800 * 1024**2) == 1
    assert in_memory(paths, 4800 * 1024**2) == 2


def test_one_file_is_read_however_little_memory_there_is(tmp_path: Path) -> None:
    assert in_memory([sparse(tmp_path / "rank0.json", 10**9)], 1) == 1


def test_every_outcome_is_told_when_it_arrives(tmp_path: Path) -> None:
    paths = [*traces(tmp_path, 2), tmp_path / "gone.json"]
    arrived: list[Outcome] = []
    found = digest_all(paths, Settings(), jobs=1, arrived=arrived.append)
    assert arrived == found
