"""Does a damaged trace ever end in a traceback, in a hang, or in another answer without a word?

A small healthy job of two ranks is analysed; then again and again with one damage to the file of
rank 1, plain or packed: bytes changed, pieces cut out, doubled, put in, numbers exchanged, the end
cut off, two files spliced. Each must end in a report or in an AnalyzerError, within SECONDS. A
report must show the step time of the undamaged job to 1 %, or tell a caveat that it does not have.

That last rule can hold only for damage that leaves a trace of itself. A plain file that is still
valid JSON after the damage is another trace, not a damaged one: who changes a digit of a number in
it changes what was measured. So it is asked of plain files that are no longer valid JSON, and of
every packed one, where the checksum stays that of the undamaged text. Numbers are exchanged under
that checksum too.

    python benchmarks/fuzz.py                       # 10,000 damages; exit status 1 after a failure
    python benchmarks/fuzz.py --first 4711 --mutations 1     # one of them again
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import zstandard

from analyzer import api
from analyzer.report.document import Report

SECONDS = 20.0
LARGEST_BYTES = 2 << 30
STEP_TIME_WITHIN = 0.01

# The caveats that name damage. A file that had to be left out is told as a rank that is missing.
DAMAGE = frozenset({"truncated", "malformed-events", "damaged-file", "untimed-events",
                    "negative-durations", "unknown-categories", "ranks-missing"})  # fmt: skip

_TOKENS = (b'"', b"{", b"}", b"[", b"]", b",", b"\\", b":", b"\0", b"\xff", b"NaN", b"-", b"1e999",
           b'{"ph": "X"}', b'"traceEvents": [', b"\n", b"9" * 40, b"[" * 5000)  # fmt: skip
_NUMBER = re.compile(rb"(?<=: )\d+(?:\.\d+)?")


class Outcome(NamedTuple):
    """What became of one damage; `failure` is "" for what is allowed."""

    number: int
    what: str
    failure: str


def clean(rank: int) -> bytes:
    """One rank of a healthy job of seven steps, with names that need every kind of escape."""
    events = ['{"ph": "M", "name": "process_name", "pid": 4242, "args": {"name": "python"}}']
    for step in range(7):
        at, link = 1000 * step, 10 * step
        events += [
            _host("user_annotation", f"ProfilerStep#{step}", at, 1000, link),
            _host("python_function", r"C:\\src\\train.py(3): \"f\" {", at, 900, link),
            _host("cpu_op", "aten::mm", at + 1, 9, link),
            _host("cuda_runtime", "cudaLaunchKernel", at + 2, 3, link + 1),
            _host("cuda_runtime", "cudaLaunchKernel", at + 6, 2, link + 2),
            _device("gemm", at + 20, 990.25, link + 1, rank, 7),
            _device("ncclDevKernel_AllReduce_Sum_f16", at + 500, 300.5, link + 2, rank, 20),
        ]
    header = {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
        "baseTimeNanoseconds": 1_759_000_000_000_000_000,
        "deviceProperties": [{"id": rank, "name": "H100", "totalGlobalMem": 85_000_000_000}],
    }
    return (json.dumps(header)[:-1] + ', "traceEvents": [\n' + ",\n".join(events) + "\n]}").encode()


def _host(category: str, name: str, at: int, length: int, link: int) -> str:
    return (
        f'{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": 4242, "tid": 4242, '
        f'"ts": {1_123_456_789 + at}.125, "dur": {length - 1}.500, '
        f'"args": {{"correlation": {link}, "Input Dims": [[8, 8], []]}}}}'
    )


def _device(name: str, at: int, length: float, link: int, rank: int, stream: int) -> str:
    collective = '"Collective name": "allreduce", "Process Group Name": "0", "Group size": 2, '
    return (
        f'{{"ph": "X", "cat": "kernel", "name": "{name}", "pid": {rank}, "tid": {stream}, '
        f'"ts": {1_123_456_789 + at}.250, "dur": {length}, "args": {{"device": {rank}, '
        f'{collective if "nccl" in name else ""}"stream": {stream}, "correlation": {link}}}}}'
    )


def _place(chance: random.Random, data: bytes) -> tuple[int, int]:
    """A stretch of the data: often short, seldom a large part."""
    begin = chance.randrange(len(data) + 1)
    return begin, min(len(data), begin + int(2 ** chance.uniform(0, 12)))


def changed(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Some bytes replaced by any, or with one bit changed."""
    new = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(new))
        new[at] = chance.choice((new[at] ^ 1 << chance.randrange(8), chance.randrange(256)))
    return bytes(new)


def cut_out(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """A stretch gone."""
    begin, end = _place(chance, data)
    return data[:begin] + data[end:]


def doubled(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """A stretch a second time, there or elsewhere."""
    begin, end = _place(chance, data)
    at = chance.choice((end, chance.randrange(len(data))))
    return data[:at] + data[begin:end] + data[at:]


def put_in(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Something foreign put in, or written over what was there."""
    at = chance.randrange(len(data) + 1)
    piece = chance.choice((*_TOKENS, chance.randbytes(chance.randrange(1, 64))))
    return data[:at] + piece + data[at + chance.choice((0, len(piece))) :]


def ended(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """The end gone."""
    return data[: chance.randrange(len(data))]


def exchanged(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Two numbers exchanged; as it is where there are none."""
    numbers = list(_NUMBER.finditer(data))
    if len(numbers) < 2:
        return data
    first, last = sorted(chance.sample(numbers, 2), key=lambda found: found.start())
    between = data[first.end() : last.start()]
    return data[: first.start()] + last[0] + between + first[0] + data[last.end() :]


def spliced(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """The begin of one file and the end of the other."""
    at = chance.randrange(len(data))
    return data[:at] + other[chance.choice((at, chance.randrange(len(other)))) :]


DAMAGES: tuple[Callable[[random.Random, bytes, bytes], bytes], ...] = (
    changed, cut_out, doubled, put_in, ended, exchanged, spliced,
)  # fmt: skip


LAYOUTS: dict[str, dict[str, Any]] = {
    "as exported": {},
    "one line": {"indent": None},
    "a key a line": {"indent": 1},
    "keys in order": {"sort_keys": True},
}


def laid_out(text: bytes, layout: Mapping[str, Any]) -> bytes:
    """The same trace in another layout."""
    return json.dumps(json.loads(text), **layout).encode() if layout else text


def damaged(number: int) -> tuple[str, bytes, str]:
    """Name and content of the file of damage `number`, and what was done to it."""
    chance = random.Random(number)
    layout = LAYOUTS[chance.choice(list(LAYOUTS))]
    text, other = laid_out(clean(1), layout), laid_out(clean(0), layout)
    damage = chance.choice(DAMAGES)
    packings = ("plain", "gzip over the text", "gzip", "zstandard")
    packing = chance.choice(packings[:2] if damage is exchanged else packings)
    what = f"{damage.__name__}, {packing}"
    if packing == "plain":
        return "rank1.json", damage(chance, text, other), what
    if packing == "zstandard":
        pack = zstandard.ZstdCompressor(write_checksum=True).compress
        return "rank1.json.zst", damage(chance, pack(text), pack(other)), what
    packed = gzip.compress(text, mtime=0)
    if packing == "gzip":
        new = damage(chance, packed, gzip.compress(other, mtime=0))
    else:
        # The text is damaged, and the checksum and length still those of the sound one.
        new = gzip.compress(damage(chance, text, other), mtime=0)[:-8] + packed[-8:]
    return "rank1.json.gz", new, what


def must_be_told(name: str, data: bytes) -> bool:
    """Whether it can be seen that the file is damaged: a plain one that is valid JSON is not."""
    if name.endswith(".json"):
        try:
            json.loads(data.decode(), parse_constant=refuse)
        except (ValueError, RecursionError):
            return True
        return False
    return True


def refuse(constant: str) -> Any:
    """ValueError: JSON knows no such number."""
    raise ValueError(constant)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """TimeoutError in what takes longer."""

    def late(signal_number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"took more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def analysed(folder: Path) -> Report:
    """The report on all files in the folder."""
    request = api.Request("fuzz", "2025-10-09T08:00:00Z")
    return api.analyze([str(folder)], request, api.Settings(), jobs=1)


def outcome(number: int, folder: Path, sound: Report) -> Outcome:
    """What becomes of damage `number`; writes the file and takes it away again."""
    name, data, what = damaged(number)
    path = folder / name
    path.write_bytes(data)
    try:
        with limited(SECONDS):
            found = analysed(folder)
    except api.AnalyzerError:
        return Outcome(number, f"{what}: refused", "")
    except Exception:
        return Outcome(number, what, traceback.format_exc(limit=-3))
    finally:
        path.unlink()
    now, before = found.steps.wall_ms.mean, sound.steps.wall_ms.mean
    told = {c.id for c in found.quality} & DAMAGE - {c.id for c in sound.quality}
    if told or abs(now - before) <= STEP_TIME_WITHIN * before:
        return Outcome(number, f"{what}: {'told' if told else 'as the sound one'}", "")
    if not must_be_told(name, data):
        return Outcome(number, f"{what}: another trace", "")
    return Outcome(number, what, f"step time {before:.4g} -> {now:.4g} ms, and no word")


def outcomes(numbers: range) -> Iterator[Outcome]:
    """The outcome of each damage: of the even ones beside a sound rank 0, of the odd ones alone."""
    with tempfile.TemporaryDirectory() as name:
        folders = Path(name, "beside"), Path(name, "alone")
        sound = []
        for folder in folders:
            folder.mkdir()
            (folder / "rank1.json").write_bytes(clean(1))
        (folders[0] / "rank0.json").write_bytes(clean(0))
        for folder in folders:
            sound.append(analysed(folder))
            (folder / "rank1.json").unlink()
        for number in numbers:
            yield outcome(number, folders[number % 2], sound[number % 2])


def main() -> None:
    """Runs the damages and says by exit status whether all of them ended as they must."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--mutations", type=int, default=10_000)
    options.add_argument("--first", type=int, default=0, help="number of the first damage")
    given = options.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (LARGEST_BYTES, LARGEST_BYTES))
    counted: Counter[str] = Counter()
    failed = 0
    for found in outcomes(range(given.first, given.first + given.mutations)):
        counted[found.what] += 1
        if found.failure:
            failed += 1
            print(f"damage {found.number} ({found.what}):\n{found.failure}")
    for what, times in sorted(counted.items()):
        print(f"{times:6,}  {what}")
    print(f"{given.mutations:,} damages, {failed} failures")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
