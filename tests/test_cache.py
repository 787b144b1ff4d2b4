"""Digests that are kept: used for the same content only, believed only where nobody else writes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from conftest import Run
from runs import healthy, write_run

from analyzer import cache as caching
from analyzer.cache import Cache
from analyzer.config import Settings, Thresholds
from analyzer.digest import RankDigest, digest, packed
from analyzer.errors import UsageError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return healthy(0, 1).write(tmp_path / "rank0.json")


def kept(place: Path, path: Path, settings: Settings | None = None) -> RankDigest:
    """The digest of a file, asked for in vain and then kept."""
    settings = settings or Settings()
    cache, made = Cache(place, settings), digest(path, settings)
    assert cache.get(path) is None
    cache.put(path, made)
    return made


def entries(place: Path) -> list[Path]:
    return sorted(place.iterdir())


def test_a_kept_digest_comes_back_whole(place: Path, path: Path) -> None:
    made = kept(place, path)
    assert Cache(place, Settings()).get(path) == made


def test_a_copy_under_another_name_is_known_and_bears_its_own_name(
    place: Path, path: Path, tmp_path: Path
) -> None:
    kept(place, path)
    copy = tmp_path / "rank7.json"
    shutil.copyfile(path, copy)
    found = Cache(place, Settings()).get(copy)
    assert found is not None
    assert packed(found) == packed(digest(copy, Settings()))


def test_another_content_under_the_same_name_is_not_known(place: Path, path: Path) -> None:
    kept(place, path)
    path.write_bytes(path.read_bytes() + b"\n")
    assert Cache(place, Settings()).get(path) is None


@pytest.mark.parametrize(
    "settings",
    [
        Settings(step_pattern=r"train (\d+)"),
        Settings(kernels={"communication": ("my_ring",)}),
        Settings(thresholds=Thresholds(thin_step_ratio=0.5)),
    ],
)
def test_other_settings_do_not_know_it(settings: Settings, place: Path, path: Path) -> None:
    kept(place, path)
    assert Cache(place, settings).get(path) is None


def test_a_changed_program_does_not_know_it(
    place: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(place, path)
    monkeypatch.setattr(caching, "_program", lambda: "changed")
    assert Cache(place, Settings()).get(path) is None


@pytest.mark.parametrize("damage", [b"", b"no digest", b"\x1f\x8b\x08"])
def test_a_corrupt_entry_is_unknown_and_replaced(damage: bytes, place: Path, path: Path) -> None:
    kept(place, path)
    (entry,) = entries(place)
    entry.write_bytes(damage)
    made = kept(place, path)
    assert Cache(place, Settings()).get(path) == made


def test_a_bit_that_fell_over_in_an_entry_is_noticed(place: Path, path: Path) -> None:
    kept(place, path)
    (entry,) = entries(place)
    content = bytearray(entry.read_bytes())
    content[len(content) // 2] ^= 1
    entry.write_bytes(content)
    assert Cache(place, Settings()).get(path) is None


def test_a_trace_that_grew_while_it_was_read_is_not_kept(place: Path, path: Path) -> None:
    cache = Cache(place, Settings())
    assert cache.get(path) is None
    made = digest(path, Settings())
    path.write_bytes(path.read_bytes() + b"\n")
    cache.put(path, made)
    assert entries(place) == []


def test_nothing_but_whole_entries_is_left_behind(place: Path, path: Path) -> None:
    kept(place, path)
    assert [entry.suffix for entry in entries(place)] == [".digest"]


def test_a_file_that_is_gone_is_unknown(place: Path, tmp_path: Path) -> None:
    assert Cache(place, Settings()).get(tmp_path / "gone.json") is None


def test_the_folder_is_made_for_this_user_alone(place: Path) -> None:
    Cache(place, Settings())
    assert place.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_can_write_to_is_refused(mode: int, place: Path) -> None:
    place.mkdir()
    place.chmod(mode)
    with pytest.raises(UsageError, match="can be written to by other users") as refused:
        Cache(place, Settings())
    assert "--no-cache" in refused.value.hint


def test_a_folder_of_another_user_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: place.stat().st_uid + 1)
    with pytest.raises(UsageError, match="belongs to another user"):
        Cache(place, Settings())


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="no cache folder"):
        Cache(tmp_path / "file" / "kept", Settings())


def test_what_was_not_used_for_longest_goes_first(place: Path, tmp_path: Path) -> None:
    paths = [healthy(rank, 3).write(tmp_path / f"rank{rank}.json") for rank in range(3)]
    cache = Cache(place, Settings())
    for path in paths:
        assert cache.get(path) is None
        cache.put(path, digest(path, Settings()))
    for age, entry in enumerate(entries(place)):
        os.utime(entry, (1_000_000 + age, 1_000_000 + age))
    newer = entries(place)[1:]
    cache.trim(sum(entry.stat().st_size for entry in newer))
    assert entries(place) == newer


def test_the_folder_follows_the_rules_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/scratch/me")
    assert caching.folder() == Path("/scratch/me/torch-ceiling")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr("sys.platform", "linux")
    assert caching.folder() == Path("/home/me/.cache/torch-ceiling")
    monkeypatch.setattr("sys.platform", "darwin")
    assert caching.folder() == Path("/home/me/Library/Caches/torch-ceiling")


def test_a_second_run_reads_no_trace_and_says_the_same(
    folder: Path, ceiling: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ceiling("analyze", folder, "--format", "json")
    monkeypatch.setattr("analyzer.fleet.digest", lambda path, settings: pytest.fail("was read"))
    assert ceiling("analyze", folder, "--format", "json") == first


def test_without_a_cache_nothing_is_kept(
    folder: Path, ceiling: Run, cache_of_its_own: Path
) -> None:
    assert ceiling("analyze", folder, "--no-cache").code == 0
    assert not cache_of_its_own.exists()


def test_a_refused_cache_is_told_and_the_report_made_all_the_same(
    folder: Path, ceiling: Run, cache_of_its_own: Path
) -> None:
    cache_of_its_own.mkdir()
    cache_of_its_own.chmod(0o777)
    ran = ceiling("analyze", folder)
    assert ran.code == 0
    assert ran.err.startswith("reading without a cache: the cache folder ")
    assert "Nothing stands out" in ran.out


def test_ranks_that_were_read_before_an_error_are_kept(
    tmp_path: Path, ceiling: Run, cache_of_its_own: Path
) -> None:
    folder = write_run(tmp_path / "run", 2)
    (folder / "rank1.json").write_text('{"traceEvents": []}')
    assert ceiling("analyze", folder).code == 0
    assert len(entries(cache_of_its_own)) == 1
