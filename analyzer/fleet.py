"""Maps `digest` over many files: in this process, over local processes, or over any executor.

One rank fails alone: its error is part of the outcome and the others go on.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, as_completed
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
    # Fresh interpreters: forking a process that has threads (a progress bar) can deadlock.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        return _mapped(pool, paths, settings, progress)


def outcome(path: Path, settings: Settings) -> Outcome:
    """The outcome of one file; what runs in a worker."""
    try:
        return Outcome(path, digest(path, settings))
    except UnusableInput as error:
        return Outcome(path, None, error.message, error.hint)


def _worthwhile(paths: Sequence[Path]) -> int:
    size = sum(path.stat().st_size for path in paths if path.exists())
    return (os.cpu_count() or 1) if size > WORTH_A_PROCESS_BYTES else 1


def _mapped(
    executor: Executor, paths: Sequence[Path], settings: Settings, progress: Progress
) -> list[Outcome]:
    done: dict[Path, Outcome] = {}
    try:
        futures = {executor.submit(outcome, path, settings): path for path in paths}
        for future in as_completed(futures):
            path = futures[future]
            done[path] = future.result()
            progress(path)
    except BrokenExecutor as error:
        # Which file it was cannot be told: all that are not done break together.
        waiting = [path.name for path in paths if path not in done]
        raise AnalyzerError(
            f"a process that read {' or '.join(waiting[:3])} was killed (out of memory?)",
            "run again with --jobs 1, or digest the ranks where they were recorded",
        ) from error
    return [done[path] for path in paths]
