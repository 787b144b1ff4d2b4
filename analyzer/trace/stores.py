"""Where is a trace, when it is not on this machine, and how is it read without a copy?

An address such as s3://bucket/run/rank0.json.gz is a path like any other here, but for how it is
opened: fsspec knows the stores, and finds credentials where the store's own programs do. Nothing is
imported and no network is used unless an address is given.
"""

from __future__ import annotations

import errno
import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from analyzer.errors import AnalyzerError, UsageError

# A request to a store takes some 50 ms however little it asks for.
_BLOCK = 4 * 1024 * 1024
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
_SIGNATURE = re.compile(r"\?[^\s'\"]*")
_ONE_SLASH = re.compile(r"^([a-z][a-z0-9+.-]+):/+", re.IGNORECASE)


class Remote(PurePosixPath):
    """A file in a store; what fails there is an OSError, whatever the store's library raises."""

    @property
    def url(self) -> str:
        """The address; a path has dropped one of its slashes."""
        return _ONE_SLASH.sub(r"\1://", str(self))

    @property
    def name(self) -> str:
        """The last part, without what follows a question mark: a signature is nobody's business."""
        return super().name.split("?")[0]

    @contextmanager
    def open(self, mode: str = "rb") -> Iterator[_File]:
        """The file, read from front to back."""
        with _as_os_errors():
            store, name = _store(self.url)
            file = store.open(name, mode, block_size=_BLOCK, cache_type="readahead")
        try:
            yield _File(file)
        finally:
            file.close()

    def size(self) -> int:
        """Bytes; 0 where the store does not say."""
        with _as_os_errors():
            store, name = _store(self.url)
            return int(store.size(name) or 0)


class _File:
    """An open file in a store."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end."""
        with _as_os_errors():
            return bytes(self._file.read(size))


TracePath = Path | Remote


def is_address(text: str) -> bool:
    """Whether the text names something in a store rather than a file."""
    return _ADDRESS.match(text) is not None


def without_signature(url: str) -> str:
    """The address as it may be shown."""
    return _SIGNATURE.sub("", url)


def size(path: TracePath) -> int:
    """Bytes of the file; 0 where a store does not say."""
    return path.size() if isinstance(path, Remote) else path.stat().st_size


def listed(url: str) -> list[Remote]:
    """The files at, below or matching the address."""
    with _as_os_errors():
        store, name = _store(url)
        scheme = url[: url.index("://")]
        if any(mark in name for mark in "*[") and not scheme.startswith("http"):
            names = store.glob(name)
        # A web server has no folders: what it lists at one is a page of links.
        elif scheme.startswith("http") or store.isfile(name):
            names = [name]
        else:
            names = store.find(name)
        return [Remote(store.unstrip_protocol(n)) for n in sorted(names)]


def _store(url: str) -> tuple[Any, str]:
    try:
        fsspec = importlib.import_module("fsspec")
        found: tuple[Any, str] = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise UsageError(
            f"addresses cannot be opened: {error}", "pip install 'torch-ceiling[cluster]'"
        ) from error
    except ValueError as error:
        raise UsageError(f"{without_signature(url)}: {error}") from error
    return found


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Each store's library has errors of its own for a missing key or a refused credential."""
    try:
        yield
    except AnalyzerError:
        raise
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, "no such file in the store") from error
    except PermissionError as error:
        raise PermissionError(errno.EACCES, "the store refuses it") from error
    except Exception as error:
        said = without_signature(str(error))
        raise OSError(errno.EIO, f"{type(error).__name__}: {said}") from error
