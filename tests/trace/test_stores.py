"""Traces by address: read as a stream, listed like folders, refused with a sentence."""

from __future__ import annotations

import gzip
import os
import pickle
import socket
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from runs import healthy, write_run

from analyzer.config import Settings
from analyzer.digest import digest, packed
from analyzer.errors import UsageError
from analyzer.fleet import digest_all
from analyzer.trace import stores
from analyzer.trace.discover import find
from analyzer.trace.stores import Remote

SETTINGS = Settings()


class Quiet(SimpleHTTPRequestHandler):
    """Python's own server: no ranges, so nothing can be read but from front to back."""

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a web server and the folder that it serves."""
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *args: Quiet(*args, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", folder
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def memory() -> Iterator[Any]:
    """fsspec's store in this process."""
    store = pytest.importorskip("fsspec").filesystem("memory")
    yield store
    store.rm("/", recursive=True)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("s3://bucket/a.json", True),
        ("https://host/a.json", True),
        ("memory://a.json", True),
        ("/data/a.json", False),
        ("C:\\data\\a.json", False),
        ("run:/a.json", False),
    ],
)
def test_an_address_is_told_from_a_path(text: str, is_one: bool) -> None:
    assert stores.is_address(text) is is_one


@pytest.mark.parametrize(
    "url", ["s3://bucket/run/rank0.json.gz", "memory://rank0.json", "https://h:8000/a.json?x=1"]
)
def test_a_remote_path_keeps_its_address_wherever_it_is_sent(url: str) -> None:
    assert pickle.loads(pickle.dumps(Remote(url))).url == url


def test_a_signature_is_no_part_of_the_name_that_is_shown() -> None:
    assert Remote("https://host/run/rank0.json.gz?X-Signature=secret").name == "rank0.json.gz"
    assert stores.without_signature("https://h/a?X=secret") == "https://h/a"


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(stores.importlib, "import_module", missing)
    with pytest.raises(UsageError) as refused:
        find(["s3://bucket/rank0.json"])
    assert refused.value.message == "addresses cannot be opened: No module named 'fsspec'"
    assert refused.value.hint == "pip install 'torch-ceiling[cluster]'"


def test_a_store_gives_the_digest_that_the_file_gives(memory: Any, tmp_path: Path) -> None:
    path = healthy(0, 1).write(tmp_path / "rank0.json")
    memory.pipe("/run/rank0.json", path.read_bytes())
    remote = digest(Remote("memory://run/rank0.json"), SETTINGS)
    assert packed(remote) == packed(digest(path, SETTINGS))


def test_a_folder_of_a_store_is_searched_as_one_of_files(memory: Any, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 2)
    for path in folder.iterdir():
        memory.pipe(f"/job/traces/{path.name}", path.read_bytes())
    memory.pipe("/job/traces/loss.json", b"{}")
    memory.pipe("/job/notes.txt", b"none")
    found = find(["memory://job"])
    assert [trace.name for trace in found.traces] == ["rank0.json", "rank1.json"]
    assert [skipped.sentence for skipped in found.skipped] == ["loss.json: JSON of another kind"]


def test_a_pattern_of_a_store_chooses(memory: Any, tmp_path: Path) -> None:
    for path in write_run(tmp_path / "run", 3).iterdir():
        memory.pipe(f"/job/{path.name}", path.read_bytes())
    assert [t.name for t in find(["memory://job/rank[02].json"]).traces] == [
        "rank0.json",
        "rank2.json",
    ]


def test_an_address_that_holds_nothing_is_skipped_with_a_reason(memory: Any) -> None:
    (skipped,) = find(["memory://nowhere"]).skipped
    assert skipped.sentence == "memory://nowhere: no trace at this address"


def test_a_scheme_that_nobody_knows_is_refused() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(UsageError, match="nosuch://a: Protocol not known"):
        find(["nosuch://a"])


def test_a_web_server_without_ranges_is_enough(served: tuple[str, Path]) -> None:
    pytest.importorskip("aiohttp")
    url, folder = served
    path = healthy(0, 1).write(folder / "rank0.json")
    (folder / "rank0.json.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    for name in ("rank0.json", "rank0.json.gz"):
        (trace,) = find([f"{url}/{name}"]).traces
        assert packed(digest(trace, SETTINGS)) == packed(digest(folder / name, SETTINGS))


def test_a_broken_archive_is_salvaged_from_a_server_too(served: tuple[str, Path]) -> None:
    pytest.importorskip("aiohttp")
    url, folder = served
    archive = bytearray(gzip.compress(healthy(0, 1).write(folder / "a.json").read_bytes(), 1))
    archive[len(archive) * 9 // 10] ^= 255
    (folder / "rank0.json.gz").write_bytes(archive)
    remote = digest(Remote(f"{url}/rank0.json.gz"), SETTINGS)
    assert packed(remote) == packed(digest(folder / "rank0.json.gz", SETTINGS))


def test_what_a_server_does_not_have_is_one_sentence(served: tuple[str, Path]) -> None:
    pytest.importorskip("aiohttp")
    url, _ = served
    (skipped,) = find([f"{url}/gone.json?key=secret"]).skipped
    assert skipped.sentence == "gone.json: cannot be read (no such file in the store)"


def test_a_server_that_does_not_answer_is_one_sentence() -> None:
    pytest.importorskip("aiohttp")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    (outcome,) = digest_all([Remote(f"http://127.0.0.1:{port}/rank0.json")], SETTINGS)
    assert outcome.error.startswith("rank0.json: cannot be read (")


@pytest.mark.stores
def test_s3_is_read_with_the_credentials_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moto = pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    path = healthy(0, 1).write(tmp_path / "rank0.json")
    store = pytest.importorskip("fsspec").filesystem("s3")
    store.mkdir("bucket")
    store.put(str(path), "bucket/run/rank0.json")
    before = set(os.listdir(tmp_path))
    (trace,) = find(["s3://bucket/run/"]).traces
    assert packed(digest(trace, SETTINGS)) == packed(digest(path, SETTINGS))
    assert set(os.listdir(tmp_path)) == before
    server.stop()
