"""Maps `digest` over many files: in this process, over local processes, or over any executor.

One rank fails alone: its error is part of the outcome and the others go on.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from analyzer.config import Settings
from analyzer.digest import RankDigest, digest
from analyzer.errors import AnalyzerError, UnusableInput

# Below this a second process takes longer to start than the files take to read.
WORTH_A_PROCESS_BYTES = 16 * 1024 * 1024

Progress = Callable[[Path], None]


@dataclass(frozen=True)
class Outcome:
    """A file's digest, or why it has none."""

    path: Path
    digest: RankDigest | None
    error: str = ""
    hint: str = ""


def digest_all(
    paths: Sequence[Path],
    settings: Settings,
    *,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Progress = lambda path: None,
) -> list[Outcome]:
    """Digests of all files, in the order given; `progress` is called as each is done.

    `jobs` processes (default: one per core, none for small inputs), or the given executor.
    """
    if executor is not None:
        return _mapped(executor, paths, settings, progress)
    jobs = min(jobs or _worthwhile(paths), len(paths))
    if jobs <= 1:
        outcomes = []
        for path in paths:
            outcomes.append(outcome(path, settings))
            progress(path)
        return outcomes
    return _pooled(jobs, paths, settings, progress)


def outcome(path: Path, settings: Settings) -> Outcome:
    """The outcome of one file; what runs in a worker."""
    try:
        return Outcome(path, digest(path, settings))
    except UnusableInput as error:
        return Outcome(path, None, error.message, error.hint)


def _worthwhile(paths: Sequence[Path]) -> int:
    size = sum(path.stat().st_size for path in paths if path.exists())
    return (os.cpu_count() or 1) if size > WORTH_A_PROCESS_BYTES else 1


def _pooled(
    jobs: int, paths: Sequence[Path], settings: Settings, progress: Progress
) -> list[Outcome]:
    """Over processes of this machine; where one is killed the files in hand are read again."""
    done: dict[Path, Outcome] = {}
    try:
        with _processes(jobs) as pool:
            with _deaf():
                futures = _submitted(pool, paths, settings)
            _collect(futures, progress, done)
    except BrokenExecutor:
        # Which of them it read cannot be told: all that are not done break together.
        for path in paths:
            if path not in done:
                done[path] = _alone(path, settings)
                progress(path)
    return [done[path] for path in paths]


def _alone(path: Path, settings: Settings) -> Outcome:
    """The outcome of a file in a process of its own; why there is none when that is killed too."""
    try:
        with _processes(1) as pool:
            with _deaf():
                future = pool.submit(outcome, path, settings)
            return future.result()
    except BrokenExecutor:
        size = f" ({path.stat().st_size:,} bytes)" if path.exists() else ""
        return Outcome(
            path,
            None,
            f"{path.name}{size}: the process that read it was killed, most likely for lack of "
            "memory, and again when it was read alone",
            "digest this rank on a machine with more memory, or record fewer steps",
        )


@contextmanager
def _processes(jobs: int) -> Iterator[Executor]:
    """A pool whose processes an interrupt of this one ends at once, without a word of theirs."""
    others = set(multiprocessing.active_children())
    # Fresh interpreters: forking a process that has threads (a progress bar) can deadlock.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            yield pool
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            raise


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes started meanwhile ignore the interrupt that a terminal sends to all of them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _submitted(
    executor: Executor, paths: Sequence[Path], settings: Settings
) -> dict[Future[Outcome], Path]:
    return {executor.submit(outcome, path, settings): path for path in paths}


def _collect(
    futures: Mapping[Future[Outcome], Path], progress: Progress, done: dict[Path, Outcome]
) -> None:
    """Adds the outcomes as they come; BrokenExecutor when a process was killed."""
    for future in as_completed(futures):
        path = futures[future]
        done[path] = future.result()
        progress(path)


def _mapped(
    executor: Executor, paths: Sequence[Path], settings: Settings, progress: Progress
) -> list[Outcome]:
    """Over the caller's executor, which is not ours to start again."""
    done: dict[Path, Outcome] = {}
    try:
        _collect(_submitted(executor, paths, settings), progress, done)
    except BrokenExecutor as error:
        waiting = [path.name for path in paths if path not in done]
        raise AnalyzerError(
            f"a process that read {' or '.join(waiting[:3])} was killed (out of memory?)",
            "run again with --jobs 1, or digest the ranks where they were recorded",
        ) from error
    return [done[path] for path in paths]
