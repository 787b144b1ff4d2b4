"""With --strict a file that is not just as it was written ends the command with exit code 3."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from click.testing import CliRunner
from damage import text_of
from make import pack

from analyzer.cli import cli
from analyzer.errors import UnusableInput

WHOLE = text_of(1).encode()
CORRUPT = gzip.compress(WHOLE, mtime=0)[:-5] + b"\0" * 5

DAMAGED: dict[str, tuple[str, bytes, str]] = {
    "mended": (
        "rank1.json",
        WHOLE.replace(b"NAME", rb"C:\x"),
        "its text needs repair (1 lone backslash)",
    ),
    "lost": ("rank1.json", WHOLE.replace(b"77.5", b"77.5.5"), "1 event(s) cannot be read"),
    "cut": ("rank1.json", WHOLE[:-40], "it ends in the middle"),
    "corrupt": ("rank1.gz", CORRUPT, "the archive is corrupt"),
    "mended and cut": (
        "rank1.json",
        WHOLE.replace(b"NAME", b"\x01")[:-40],
        "it ends in the middle and its text needs repair (1 control character)",
    ),
}


def strict(folder: Path, *command: str) -> None:
    (folder / "rank0.json").write_text(text_of(0))
    arguments = [*command, str(folder), "--strict"]
    CliRunner().invoke(cli, arguments, catch_exceptions=False, standalone_mode=False)


@pytest.mark.parametrize("how", DAMAGED)
@pytest.mark.parametrize("command", ["analyze", "digest"])
def test_a_damaged_file_is_refused_in_one_sentence(how: str, command: str, tmp_path: Path) -> None:
    name, data, what = DAMAGED[how]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).write_bytes(data)
    more = ["-o", str(tmp_path / "out")] if command == "digest" else []
    with pytest.raises(UnusableInput) as refusal:
        strict(tmp_path / "run", command, *more)
    assert refusal.value.exit_code == 3
    assert refusal.value.message == (
        f"{name} ({len(data):,} bytes): {what}, and --strict takes no damaged file"
    )
    assert not (tmp_path / "out").exists()


def test_sound_files_pass(tmp_path: Path) -> None:
    pack(tmp_path / "rank1.json.gz", WHOLE)
    strict(tmp_path, "analyze")
