"""How does a report compare, on the same file and in one run, with json.loads, with a bare typed
decode, with itself on smaller files, and with Holistic Trace Analysis where that is installed?

A sample trace is repeated, later each time, until its text is as large as asked (see ingest.py).
Every contender is a process of its own; they take turns, so that ratios are of neighbours in time.
Ratios are of processor seconds, user and system of the process and what it started, since other
work on the machine stretches wall time; both are printed. Times inside of a process (json.loads,
decode) leave out starting it and reading the file.

    python benchmarks/peers.py                           # exit status 1 when over a limit
    python benchmarks/peers.py --megabytes 10 100 500 1000 --hta /venv/of/hta/bin/python
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ingest import JSON_LOADS, SAMPLE, repeated

# Of what the issue of this tool's speed promises; a ratio is analyze over the other.
MOST_OF_LOADS = 0.4
MOST_OF_DECODE = 1.5
SMALL_S = 0.5
LINEAR = 0.15
BYTES_PER_EVENT, BYTES_BESIDE = 60, 100e6
LEAST_CACHE_GAIN = 20.0

DECODE = """
import sys, time
import msgspec
from isal import igzip
from analyzer.trace.kineto import Event
class WithArgs(msgspec.Struct):
    ph: str
    cat: str | None = None
    name: str | int | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float | None = None
    dur: float | None = None
    args: dict | None = None
class Trace(msgspec.Struct):
    traceEvents: list[{event}]
start = time.process_time()
with igzip.open(sys.argv[1]) as file:
    found = msgspec.json.decode(file.read(), type=Trace)
print(time.process_time() - start)
"""

KEPT = """
import sys
from pathlib import Path
from analyzer.trace.kineto import read
trace = read(Path(sys.argv[1]))
print(trace.meta.events, len(trace.host) + len(trace.device))
"""

READ_TWICE = """
import sys, tempfile, time
from pathlib import Path
from analyzer.api import Settings, digests
from analyzer.cache import Cache
with tempfile.TemporaryDirectory() as folder:
    for turn in (1, 2):
        start = time.process_time()
        digests(sys.argv[1:], Settings(), jobs=1, cache=Cache(Path(folder) / "kept", Settings()))
        print(time.process_time() - start)
"""

HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_dir=sys.argv[1])
analysis.get_temporal_breakdown(visualize=False)
analysis.get_comm_comp_overlap(visualize=False)
analysis.get_idle_time_breakdown(ranks=list(analysis.t.traces), visualize=False)
"""


class Cost(NamedTuple):
    """What a command took: wall and processor seconds, and the most memory its processes had."""

    wall: float
    cpu: float
    megabytes: float
    printed: str


def run(command: list[str]) -> Cost:
    """Runs a command; ends this program when it fails."""
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        most = [0]
        watch = threading.Thread(target=_watch, args=(process.pid, most))
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        watch.join()
        output.seek(0)
        printed = output.read().decode()
    if process.returncode:
        sys.exit(f"{' '.join(command[:4])} ended with {process.returncode}:\n{printed}")
    largest = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    megabytes = max(most[0], largest) / 1e6
    return Cost(wall, usage.ru_utime + usage.ru_stime, megabytes, printed)


def _watch(pid: int, most: list[int]) -> None:
    """Keeps the largest sum of resident memory of a process and its children, where /proc is."""
    page = os.sysconf("SC_PAGE_SIZE")
    while True:
        try:
            total = sum(int(Path(f"/proc/{p}/statm").read_text().split()[1]) for p in _family(pid))
        except OSError:
            if not Path(f"/proc/{pid}/statm").exists():
                return
            continue
        if not total:
            return
        most[0] = max(most[0], total * page)
        time.sleep(0.02)


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _family(int(child))


def python(code: str, *arguments: str | Path, by: str = sys.executable) -> Cost:
    return run([by, "-c", code, *map(str, arguments)])


def analyze(trace: Path, output: Path) -> Cost:
    command = [sys.executable, "-m", "analyzer", "analyze", "--no-cache", "--force"]
    return run([*command, str(trace), "-o", str(output)])


class Size(NamedTuple):
    """What is compared between files of different sizes."""

    events: int
    reading: float


def one_size(trace: Path, megabytes: int, turns: int, hta: str) -> tuple[Size, list[bool]]:
    """Prints the comparison on one trace; its cost, and which promises held."""
    output = trace.parent / "report"
    events, kept = map(int, python(KEPT, trace).printed.split())
    rows = []
    for _ in range(turns):
        loads = float(python(JSON_LOADS, trace).printed)
        bare = float(python(DECODE.format(event="Event"), trace).printed)
        whole = float(python(DECODE.format(event="WithArgs"), trace).printed)
        rows.append((loads, bare, whole, analyze(trace, output)))
    loads, bare, whole = (statistics.median(r[i] for r in rows) for i in range(3))
    cost = sorted((r[3] for r in rows), key=lambda c: c.cpu)[len(rows) // 2]
    first, second = map(float, python(READ_TWICE, trace).printed.split())
    limit = (BYTES_PER_EVENT * kept + BYTES_BESIDE) / 1e6
    print(f"\n{megabytes} MB of text, {events:,} events, {kept:,} kept")
    print(f"  analyze {cost.cpu:.2f} s of processor, {cost.wall:.2f} s, {cost.megabytes:.0f} MB")
    promises = [
        _promise("of json.loads", cost.cpu / loads, MOST_OF_LOADS, f"{loads:.2f} s"),
        _promise("of inflate + decode, args as dict", cost.cpu / whole, MOST_OF_DECODE,
                 f"{whole:.2f} s"),
        _promise("of inflate + decode, our args only", cost.cpu / bare, MOST_OF_DECODE,
                 f"{bare:.2f} s"),
        _promise("MB at most", cost.megabytes, limit, "60 bytes a kept event + 100 MB"),
        _promise("of reading again, with the cache", second / first, 1 / LEAST_CACHE_GAIN,
                 f"{first:.2f} s, then {second:.3f} s"),
    ]  # fmt: skip
    if hta:
        folder = trace.parent / "only"
        folder.mkdir(exist_ok=True)
        (folder / trace.name).unlink(missing_ok=True)
        os.link(trace, folder / trace.name)
        other = python(HTA, folder, by=hta)
        print(
            f"  HTA {other.cpu:.2f} s of processor, {other.wall:.2f} s, {other.megabytes:.0f} MB: "
            f"{other.cpu / cost.cpu:.1f} x the time, {other.megabytes / cost.megabytes:.1f} x the "
            "memory"
        )
    return Size(events, first), promises


def _promise(what: str, value: float, limit: float, beside: str) -> bool:
    held = value <= limit
    word = "kept" if held else "NOT KEPT"
    print(f"  {value:8.3f} {what} ({beside}); promised {limit:.3f}: {word}")
    return held


def linear(sizes: list[Size]) -> bool:
    """Whether an event takes as long to read and reduce in files of all sizes."""
    costs = [1e6 * size.reading / size.events for size in sizes]
    print("\nus an event: " + ", ".join(f"{cost:.2f}" for cost in costs))
    return _promise("between sizes", max(costs) / min(costs) - 1, LINEAR, "spread")


def main() -> None:
    """Makes the traces, measures, and says by exit status whether the promises were kept."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--megabytes", type=int, nargs="+", default=[10, 100])
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--hta", default="", help="an interpreter that has HTA installed")
    given = options.parse_args()
    held, sizes = [], []
    with tempfile.TemporaryDirectory() as name:
        trace = Path(name) / "rank0.json.gz"
        small = [analyze(SAMPLE, Path(name) / "small") for _ in range(given.turns)]
        least = min(small, key=lambda cost: cost.cpu)
        print(f"a trace of {SAMPLE.stat().st_size / 1e3:.0f} kB, whole: {least.wall:.2f} s")
        held.append(_promise("s of processor", least.cpu, SMALL_S, "three files written"))
        for megabytes in given.megabytes:
            with gzip.open(SAMPLE, "rt") as sample, gzip.open(trace, "wt", 6) as packed:
                packed.writelines(repeated(sample.read(), megabytes * 10**6))
            size, promises = one_size(trace, megabytes, given.turns, given.hta)
            sizes.append(size)
            held += promises
    if len(sizes) > 1:
        held.append(linear(sizes))
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
