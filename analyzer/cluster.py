"""How are traces read on the processes of a Dask cluster?

A worker that dies takes what it was reading with it; the scheduler gives that to another one, and a
file that kills one worker after the other is given up alone. Files are opened by the workers, so
they must see them where this process does.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

from analyzer import __version__
from analyzer.errors import UsageError
from analyzer.fleet import Outcome
from analyzer.report.caveats import Note

_CONNECT_S = 10
_HINT = "pip install 'torch-ceiling[cluster]'"


class Cluster(Executor):
    """The workers of a scheduler, for `fleet.digest_all`."""

    def __init__(self, client: Any, killed: type[Exception]) -> None:
        self._client = client
        self._killed = killed
        self._pool: Executor = client.get_executor(pure=False)
        self._workers = set(client.nthreads())

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As any executor's; a file that killed several workers is an Outcome without digest."""
        future: Future[Any] = Future()

        def settle(inner: Future[Any]) -> None:
            error = inner.exception()
            if isinstance(error, self._killed):
                name = args[0].name
                future.set_result(
                    Outcome(args[0], None, f"{name}: killed every worker that read it (memory?)")
                )
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(inner.result())

        self._pool.submit(fn, *args, **kwargs).add_done_callback(settle)
        return future

    def notes(self) -> list[Note]:
        """What the reader of the report should know about the workers, once all is read."""
        lost = len(self._workers - set(self._client.nthreads()))
        if not lost:
            return []
        return [
            Note(
                "worker-lost",
                f"{lost} worker(s) of the cluster left while traces were read; what they had not "
                "finished was read again by the others, so nothing is missing.",
            )
        ]


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """The cluster whose scheduler is at the address; UsageError when it cannot be used."""
    try:
        distributed = importlib.import_module("distributed")
    except ImportError as error:
        raise UsageError(f"--cluster needs Dask: {error}", _HINT) from error
    try:
        client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        _require_same(client)
        yield Cluster(client, distributed.KilledWorker)


def _require_same(client: Any) -> None:
    """UsageError unless all workers run this version: digests of another cannot be compared."""
    try:
        versions = set(client.run(_version).values())
    except ImportError as error:
        raise UsageError(f"a worker of the cluster lacks this program: {error}", _HINT) from error
    if not versions:
        raise UsageError("the cluster has no worker", "start one: dask worker ADDRESS")
    if versions != {__version__}:
        raise UsageError(
            f"the cluster's workers run {', '.join(sorted(versions))}, this is {__version__}",
            "install the same version on all of them",
        )


def _version() -> str:
    return __version__
