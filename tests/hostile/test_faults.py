"""Faults of the machine: a full disk, a disk that fails, killed workers, an interrupt."""

from __future__ import annotations

import errno
import io
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dying
import pytest
from conftest import Run
from damage import caveat, text_of
from runs import write_run

from analyzer import fleet
from analyzer.config import Settings
from analyzer.report import document
from analyzer.trace import inflate

ROOT = Path(__file__).parents[2]
FORMATS = ("report.html", "report.json", "report.md")


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file can grow beyond `size`: writing fails as on a full disk, by the system itself."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 1000, 30_000])
def test_a_full_disk_leaves_the_old_report_whole(
    size: int, folder: Path, tmp_path: Path, ceiling: Run
) -> None:
    out = tmp_path / "out"
    assert ceiling("analyze", folder, "-o", out).code == 0
    old = {name: (out / name).read_bytes() for name in FORMATS}
    with largest_file(size):
        ran = ceiling("analyze", folder, "-o", out, "--force", "--label", "another")
    assert (ran.code, ran.out) == (2, "")
    error, *_ = ran.err.splitlines()
    assert error.startswith(f"error: {out}")
    assert "cannot be written (File too large)" in error
    assert {path.name: path.read_bytes() for path in out.iterdir()} == old


def test_a_full_disk_leaves_no_half_digest(folder: Path, tmp_path: Path, ceiling: Run) -> None:
    with largest_file(500):
        ran = ceiling("digest", folder, "-o", tmp_path / "out")
    assert ran.code == 2
    assert list((tmp_path / "out").iterdir()) == []


def test_a_stop_while_writing_leaves_the_old_report_whole(
    folder: Path, tmp_path: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    ceiling("analyze", folder, "-o", out)
    old = {name: (out / name).read_bytes() for name in FORMATS}

    def stopped(path: str, mode: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "chmod", stopped)
    assert ceiling("analyze", folder, "-o", out, "--force").code == 130
    assert {path.name: path.read_bytes() for path in out.iterdir()} == old


class Failing(io.BytesIO):
    """A file on a disk that fails after some bytes."""

    def __init__(self, data: bytes, good: int) -> None:
        super().__init__(data)
        self.good = good

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() >= self.good:
            raise OSError(errno.EIO, "Input/output error")
        return super().read(self.good - self.tell() if size in (None, -1) else size)


def test_a_disk_that_fails_in_the_middle_gives_what_was_read_and_is_told(
    tmp_path: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inflate, "PIECE", 512)
    whole, real = text_of(1).encode(), Path.open
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.json").write_text(text_of(rank))

    def opened(path: Path, *how: Any, **more: Any) -> Any:
        good = Failing(whole, len(whole) * 3 // 4)
        return good if path.name == "rank1.json" else real(path, *how, **more)

    monkeypatch.setattr(Path, "open", opened)
    ran = ceiling("analyze", tmp_path, "-o", "report.json")
    assert ran.code == 0
    found = document.read(tmp_path / "report.json")
    assert found.run.ranks_present == [0, 1]
    assert "since reading it failed (Input/output error) (rank 1)" in caveat(found, "damaged-file")


def test_a_rank_whose_process_was_killed_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = sorted(write_run(tmp_path, 4).iterdir())
    sound = fleet.digest_all(paths, Settings(), jobs=1)
    monkeypatch.setattr(fleet, "outcome", dying.killed_once)
    seen: list[Path] = []
    assert fleet.digest_all(paths, Settings(), jobs=2, progress=seen.append) == sound
    assert sorted(seen) == paths
    assert (tmp_path / "rank1.killed").exists()


def test_a_rank_whose_process_is_killed_again_is_left_out_and_told(
    folder: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "outcome", dying.killed_always)
    ran = ceiling("analyze", folder, "--jobs", "2")
    assert ran.code == 0
    assert "1 of 2 ranks" in ran.out
    size = (folder / "rank1.json").stat().st_size
    assert ran.err == (
        f"skipped rank1.json ({size:,} bytes): the process that read it was killed, most likely "
        "for lack of memory, and again when it was read alone\n"
    )


def waited(fact: Callable[[], bool]) -> None:
    """Returns once it is so; fails after half a minute."""
    end = time.monotonic() + 30
    while not fact():
        assert time.monotonic() < end
        time.sleep(0.02)


def interrupted(folder: Path, *, group: bool) -> tuple[int, str, list[int]]:
    """Exit code and stderr of a command whose workers are at work when it is interrupted."""
    script = (
        "import sys, dying; from analyzer import cli, fleet; fleet.outcome = dying.never_done; "
        "sys.argv = ['ceiling', 'analyze', sys.argv[1], '--jobs', '2']; cli.main()"
    )
    paths = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "hostile")]
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )
    begun = [folder / f"rank{rank}.pid" for rank in (0, 1)]
    waited(lambda: all(path.exists() for path in begun))
    workers = [int(path.read_text()) for path in begun]
    if group:
        os.killpg(process.pid, signal.SIGINT)
    else:
        os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    return process.returncode, err, workers


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("group", [True, False], ids=["terminal", "process"])
def test_an_interrupt_ends_the_command_and_its_workers_in_one_word(
    group: bool, folder: Path
) -> None:
    code, err, workers = interrupted(folder, group=group)
    assert (code, err.strip()) == (130, "interrupted")
    waited(lambda: all(gone(pid) for pid in workers))


def test_an_interrupt_while_the_libraries_are_read_in_is_one_word_too() -> None:
    script = (
        "import runpy, sys\n"
        "class Slow:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'numpy':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Slow())\n"
        "runpy.run_module('analyzer', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
