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
from itertools import accumulate

from analyzer.config import Settings
from analyzer.digest import RankDigest, digest
from analyzer.errors import AnalyzerError, UnusableInput
from analyzer.trace import stores
from analyzer.trace.stores import TracePath

# Below this a second process takes longer to start than the files take to read.
WORTH_A_PROCESS_BYTES = 16 * 1024 * 1024

INTERPRETER_BYTES = 100 * 1024 * 1024
PACKED_RATIO = 30

Progress = Callable[[TracePath], None]


@dataclass(frozen=True)
class Outcome:
    """A file's digest, or why it has none."""

    path: TracePath
    digest: RankDigest | None
    error: str = ""
    hint: str = ""


def digest_all(
    paths: Sequence[TracePath],
    settings: Settings,
    *,
    jobs: int | None = None,
    executor: Executor | None = None,
    max_memory: int | None = None,
    progress: Progress = lambda path: None,
    arrived: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Digests of all files, in the order given; each is told to `arrived` and `progress` when done.

    `jobs` processes (default: one per core, none for small inputs), fewer where the ranks they read
    would take more than `max_memory` bytes together; or any executor of concurrent.futures. On a
    cluster with MPI that is mpi4py's: a program that says `with MPIPoolExecutor() as pool:
    analyze(paths, ..., executor=pool)` is started by `mpiexec -n 64 python -m mpi4py.futures`.
    """

    def done(outcome: Outcome) -> None:
        arrived(outcome)
        progress(outcome.path)

    if executor is not None:
        return _mapped(executor, paths, settings, done)
    jobs = min(jobs or _worthwhile(paths), in_memory(paths, max_memory), len(paths))
    if jobs <= 1:
        outcomes = []
        for path in paths:
            outcomes.append(outcome(path, settings))
            done(outcomes[-1])
        return outcomes
    return _pooled(jobs, paths, settings, done)


def outcome(path: TracePath, settings: Settings) -> Outcome:
    """The outcome of one file; what runs in a worker."""
    try:
        return Outcome(path, digest(path, settings))
    except UnusableInput as error:
        return Outcome(path, None, error.message, error.hint)


def in_memory(paths: Sequence[TracePath], most: int | None) -> int:
    """How many of these files can be read at once in `most` bytes, whichever they are; 1 at least.

    By default: in three quarters of what this machine has, where it says so.
    """
    most = most or _memory() * 3 // 4
    if not most:
        return len(paths)
    needs = accumulate(sorted(map(_need, paths), reverse=True))
    return max(sum(need <= most for need in needs), 1)


def _need(path: TracePath) -> int:
    """Bytes to read a file in, from above: 60 for each event that is kept, and the interpreter.

    An event takes 200 bytes of text, and text packs 30 times at most in the traces met so far.
    """
    packed = path.suffix.lower() in (".gz", ".zst")
    return INTERPRETER_BYTES + _size(path) * (PACKED_RATIO if packed else 1) * 60 // 200


def _memory() -> int:
    """Bytes of this machine, 0 where Python cannot tell."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return 0
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _size(path: TracePath) -> int:
    """0 for a file that is gone: whoever reads it says so."""
    try:
        return stores.size(path)
    except OSError:
        return 0


def _worthwhile(paths: Sequence[TracePath]) -> int:
    size = sum(map(_size, paths))
    return (os.cpu_count() or 1) if size > WORTH_A_PROCESS_BYTES else 1


def _pooled(
    jobs: int,
    paths: Sequence[TracePath],
    settings: Settings,
    told: Callable[[Outcome], None],
) -> list[Outcome]:
    """Over processes of this machine; where one is killed the files in hand are read again."""
    done: dict[TracePath, Outcome] = {}
    try:
        with _processes(jobs) as pool:
            with _deaf():
                futures = _submitted(pool, paths, settings)
            _collect(futures, told, done)
    except BrokenExecutor:
        # Which of them it read cannot be told: all that are not done break together.
        for path in paths:
            if path not in done:
                done[path] = _alone(path, settings)
                told(done[path])
    return [done[path] for path in paths]


def _alone(path: TracePath, settings: Settings) -> Outcome:
    """The outcome of a file in a process of its own; why there is none when that is killed too."""
    try:
        with _processes(1) as pool:
            with _deaf():
                future = pool.submit(outcome, path, settings)
            return future.result()
    except BrokenExecutor:
        size = f" ({_size(path):,} bytes)" if _size(path) else ""
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
    executor: Executor, paths: Sequence[TracePath], settings: Settings
) -> dict[Future[Outcome], TracePath]:
    return {executor.submit(outcome, path, settings): path for path in paths}


def _collect(
    futures: Mapping[Future[Outcome], TracePath],
    told: Callable[[Outcome], None],
    done: dict[TracePath, Outcome],
) -> None:
    """Adds the outcomes as they come; BrokenExecutor when a process was killed."""
    for future in as_completed(futures):
        path = futures[future]
        done[path] = future.result()
        told(done[path])


def _mapped(
    executor: Executor,
    paths: Sequence[TracePath],
    settings: Settings,
    told: Callable[[Outcome], None],
) -> list[Outcome]:
    """Over the caller's executor, which is not ours to start again."""
    done: dict[TracePath, Outcome] = {}
    try:
        _collect(_submitted(executor, paths, settings), told, done)
    except BrokenExecutor as error:
        waiting = [path.name for path in paths if path not in done]
        raise AnalyzerError(
            f"a process that read {' or '.join(waiting[:3])} was killed (out of memory?)",
            "run again with --jobs 1, or digest the ranks where they were recorded",
        ) from error
    return [done[path] for path in paths]
