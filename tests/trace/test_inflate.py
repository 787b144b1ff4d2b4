from __future__ import annotations

import errno
import gzip
import importlib.util
import io
import random
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
import zstandard

from analyzer.errors import UnusableInput
from analyzer.trace import inflate
from analyzer.trace.inflate import CORRUPT, TRAILING, Text

LONG = b",\n".join(b'{"ph": "X", "name": "event %d"}' % i for i in range(20_000))
PACKED = {
    "plain": LONG,
    "gzip": gzip.compress(LONG),
    "gzip of two members": gzip.compress(LONG[:777]) + gzip.compress(LONG[777:]),
    "gzip padded with zeros": gzip.compress(LONG) + b"\0" * 40_000,
    "zstandard": zstandard.compress(LONG),
    "zstandard of two frames": zstandard.compress(LONG[:777]) + zstandard.compress(LONG[777:]),
}
GZIP = PACKED["gzip"]


@pytest.fixture(autouse=True, params=["isal", "zlib"])
def _either_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "zlib":
        monkeypatch.setattr(inflate, "deflate", zlib)


def found(folder: Path, data: bytes) -> tuple[bytes, Text]:
    """The text of a file that holds `data`, and the Text that gave it."""
    path = folder / "trace.any"
    path.write_bytes(data)
    text = Text(path)
    return b"".join(text), text


@pytest.mark.parametrize("packing", PACKED)
def test_content_says_how_a_file_is_packed(packing: str, tmp_path: Path) -> None:
    data, text = found(tmp_path, PACKED[packing])
    assert (data, text.cut, text.damage) == (LONG, False, "")


def test_a_cut_archive_gives_its_text_up_to_the_cut(tmp_path: Path) -> None:
    chance = random.Random(1)
    for cut in [*range(len(GZIP) - 9, len(GZIP)), *chance.choices(range(20, len(GZIP)), k=30)]:
        whole = zlib.decompressobj(31).decompress(GZIP[:cut])
        data, text = found(tmp_path, GZIP[:cut])
        # isal keeps up to two bytes until the block that they belong to ends.
        assert whole[: len(whole) - 2] == data[: len(whole) - 2]
        assert (text.cut, text.damage) == (True, "")


def test_a_cut_zstandard_archive_gives_its_whole_blocks(tmp_path: Path) -> None:
    data, _ = found(tmp_path, PACKED["zstandard"][: len(PACKED["zstandard"]) // 2])
    assert len(data) >= 128 * 1024
    assert LONG.startswith(data)


@pytest.mark.parametrize("back", range(1, 9))
def test_a_checksum_that_does_not_fit_is_told_and_the_text_is_kept(
    back: int, tmp_path: Path
) -> None:
    wrong = bytearray(GZIP)
    wrong[-back] ^= 1
    data, text = found(tmp_path, bytes(wrong))
    assert (data, text.damage) == (LONG, CORRUPT)


def test_every_changed_bit_of_an_archive_is_told(tmp_path: Path) -> None:
    chance = random.Random(2)
    for _ in range(60):
        wrong = bytearray(GZIP)
        wrong[chance.randrange(12, len(GZIP))] ^= 1 << chance.randrange(8)
        assert found(tmp_path, bytes(wrong))[1].damage == CORRUPT


def test_a_damaged_archive_gives_what_precedes_the_damage(tmp_path: Path) -> None:
    middle = len(GZIP) // 2
    before = zlib.decompressobj(31).decompress(GZIP[:middle])
    data, text = found(tmp_path, GZIP[:middle] + b"\xff" * 100 + GZIP[middle + 100 :])
    assert data[: len(before) - 2] == before[: len(before) - 2]
    assert text.damage == CORRUPT


def test_a_damaged_zstandard_archive_is_told(tmp_path: Path) -> None:
    packed = PACKED["zstandard"]
    data, text = found(tmp_path, packed[:-2000] + b"\xff" * 100 + packed[-1900:])
    assert LONG.startswith(data)
    assert text.damage == CORRUPT


def test_what_follows_an_archive_is_told(tmp_path: Path) -> None:
    data, text = found(tmp_path, GZIP + b"more")
    assert (data, text.damage) == (LONG, TRAILING)


BOMBS = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "zstandard": zstandard.compress,
}


@pytest.mark.parametrize("packing", BOMBS)
def test_an_archive_that_unpacks_without_end_is_refused_early(
    packing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inflate, "BOMB_FROM", 1_000_000)
    path = tmp_path / "bomb.json"
    path.write_bytes(BOMBS[packing](b'{"traceEvents": [' + b" " * 30_000_000))
    sizes: list[int] = []
    with pytest.raises(UnusableInput) as refusal:
        sizes.extend(map(len, Text(path)))
    assert refusal.value.message == (
        "bomb.json: unpacks to more than 150 times its size, which no trace does"
    )
    assert sum(sizes) < 6_000_000


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match=r"^gone\.json: cannot be read \(No such file"):
        list(Text(tmp_path / "gone.json"))


def test_a_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match=r": cannot be read \(Is a directory\)$"):
        list(Text(tmp_path))


class Failing(io.RawIOBase):
    """Gives some bytes, then fails as a bad disk does."""

    def __init__(self, data: bytes, error: OSError) -> None:
        self._data = io.BytesIO(data)
        self._error = error

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._data.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        piece = self._data.read(len(buffer))
        if not piece:
            raise self._error
        buffer[: len(piece)] = piece
        return len(piece)


def failing(monkeypatch: pytest.MonkeyPatch, data: bytes, error: OSError) -> Text:
    monkeypatch.setattr(Path, "open", lambda self, mode: io.BufferedReader(Failing(data, error)))
    return Text(Path("t.json"))


@pytest.mark.parametrize(
    "error", [PermissionError(errno.EACCES, "Permission denied"), OSError(errno.EIO, "I/O error")]
)
def test_a_file_that_may_not_be_read_is_one_sentence(
    error: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = failing(monkeypatch, b"", error)
    with pytest.raises(UnusableInput, match=rf"^t\.json: cannot be read \({error.strerror}\)$"):
        list(text)


@pytest.mark.parametrize("packing", ["plain", "gzip"])
def test_a_disk_that_fails_in_the_middle_leaves_what_was_read(
    packing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = PACKED[packing]
    text = failing(monkeypatch, data[: len(data) * 9 // 10], OSError(errno.EIO, "I/O error"))
    kept = b"".join(text)
    assert len(kept) > 100_000
    assert LONG.startswith(kept)
    assert text.damage == "reading it failed (I/O error)"


def test_zlib_inflates_where_there_is_no_isal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    spec = importlib.util.spec_from_file_location("inflate_without_isal", inflate.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.deflate is zlib
