"""A Dask cluster reads what this process would, also when its workers die."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from runs import write_run

from analyzer import cluster as clusters
from analyzer.config import Settings
from analyzer.errors import UsageError
from analyzer.fleet import digest_all
from analyzer.trace.stores import TracePath


@pytest.fixture(scope="module")
def local() -> Iterator[Any]:
    """A cluster of two processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
    ) as cluster:
        yield cluster


@pytest.fixture
def scheduler(local: Any) -> str:
    """Its address; what another test killed is there again."""
    local.wait_for_workers(2)
    return str(local.scheduler_address)


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    folder = write_run(tmp_path / "run", 6)
    return [folder / f"rank{r}.json" for r in range(6)]


def die(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.cluster
@pytest.mark.filterwarnings("default")
class TestWithDask:
    def test_the_digests_are_those_of_this_process(self, scheduler: str, paths: list[Path]) -> None:
        with clusters.connected(scheduler) as cluster:
            found = digest_all(paths, Settings(), executor=cluster)
            assert cluster.notes() == []
        assert found == digest_all(paths, Settings(), jobs=1)

    def test_nothing_is_lost_with_a_worker_that_is_killed_midway(
        self, scheduler: str, paths: list[Path]
    ) -> None:
        with clusters.connected(scheduler) as cluster:
            victims = list(cluster._client.run(os.getpid).values())[:1]

            def kill(path: TracePath) -> None:
                if victims:
                    os.kill(victims.pop(), signal.SIGKILL)

            found = digest_all(paths, Settings(), executor=cluster, progress=kill)
            ((caveat, text),) = cluster.notes()
        assert found == digest_all(paths, Settings(), jobs=1)
        assert caveat == "worker-lost"
        assert text.startswith("1 worker(s) of the cluster left while traces were read; ")

    def test_a_file_that_kills_every_worker_is_given_up_alone(
        self, scheduler: str, paths: list[Path]
    ) -> None:
        with clusters.connected(scheduler) as cluster:
            outcome: Any = cluster.submit(die, paths[3]).result()
        assert outcome.digest is None
        assert outcome.error == "rank3.json: killed every worker that read it (memory?)"

    def test_the_command_reads_on_the_cluster(
        self, scheduler: str, paths: list[Path], ceiling: Run
    ) -> None:
        here = ceiling("analyze", paths[0].parent, "--no-cache", "--format", "json")
        ran = ceiling(
            "analyze", paths[0].parent, "--no-cache", "--format", "json", "--cluster", scheduler
        )
        assert (ran.code, json.loads(ran.out)) == (0, json.loads(here.out))

    def test_an_address_without_a_scheduler_is_one_sentence(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("distributed")
        monkeypatch.setattr(clusters, "_CONNECT_S", 0.2)
        with (
            pytest.raises(UsageError, match="no Dask scheduler answers at tcp:"),
            clusters.connected("tcp://127.0.0.1:9"),
        ):
            pass

    def test_workers_of_another_version_are_refused(
        self, scheduler: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(clusters, "__version__", "0.0.0")
        with (
            pytest.raises(UsageError, match=r"the cluster.s workers run .*, this is 0\.0\.0"),
            clusters.connected(scheduler),
        ):
            pass


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(clusters.importlib, "import_module", missing)
    with pytest.raises(UsageError) as refused, clusters.connected("tcp://127.0.0.1:9"):
        pass
    assert refused.value.message == "--cluster needs Dask: No module named 'distributed'"
    assert refused.value.hint == "pip install 'torch-ceiling[cluster]'"
