"""Is a report made in half the time json.loads needs for the trace's text, and in bounded memory?

A sample trace is repeated, later each time, until its text is as large as asked, and packed with
gzip. Then json.loads on the text in memory and the whole command, from the packed file to all its
outputs, take turns, each in a process of its own: a ratio is of two neighbours in time.

    python benchmarks/ingest.py            # exit status 1 when over the limits
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SAMPLE = Path(__file__).resolve().parents[1] / "sample_traces/healthy-ddp-4gpu/rank0.json.gz"
LARGEST_RATIO = 0.5
LARGEST_MB = 150.0

# Timed inside, so that neither starting the interpreter nor inflating counts as json.loads.
JSON_LOADS = """
import gzip, json, sys, time
text = gzip.open(sys.argv[1]).read().decode()
start = time.process_time()
json.loads(text)
print(time.process_time() - start)
"""

# What must differ between one repetition and the next; times in whole microseconds.
_NUMBERS = re.compile(r'"(?P<key>ts|correlation|External id|id)": (?P<n>\d+)|Step#(?P<step>\d+)')


class Run(NamedTuple):
    """Processor seconds of one process, and the largest resident memory of it or of one it started:
    other work on the machine stretches the time by the clock.
    """

    seconds: float
    megabytes: float
    printed: str


def repeated(text: str, size: int) -> Iterator[str]:
    """A trace of at least `size` characters that goes on as the one given."""
    start = text.index('"traceEvents": [') + len('"traceEvents": [')
    end = text.rindex("]")
    events = text[start:end].strip()
    seen: dict[str, set[int]] = {"ts": set(), "ids": set(), "step": set()}
    for found in _NUMBERS.finditer(events):
        seen[_series(found)].add(int(found["step"] or found["n"]))
    # Half a period more than the starts span, since the last of them has a length.
    shifts = {key: max(n) - min(n) + 1 for key, n in seen.items()}
    shifts["ts"] += shifts["ts"] // 2
    yield text[:start] + "\n"
    for turn in range(1 + size // len(events)):
        yield (",\n" if turn else "") + _shifted(events, {k: turn * n for k, n in shifts.items()})
    yield "\n" + text[end:]


def _series(found: re.Match[str]) -> str:
    return "step" if found["step"] else "ts" if found["key"] == "ts" else "ids"


def _shifted(events: str, shifts: dict[str, int]) -> str:
    def later(found: re.Match[str]) -> str:
        number = int(found["step"] or found["n"]) + shifts[_series(found)]
        return f"Step#{number}" if found["step"] else f'"{found["key"]}": {number}'

    return _NUMBERS.sub(later, events)


def run(command: list[str]) -> Run:
    """Runs the command; ends this program when it fails."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        printed = output.read().decode()
    if process.returncode:
        sys.exit(f"{' '.join(command[:4])} ended with {process.returncode}:\n{printed}")
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 1e6, printed)


def measure(trace: Path, folder: Path, pairs: int) -> bool:
    """Prints every pair and the median; whether both limits are kept."""
    ratios, megabytes = [], []
    for pair in range(1, pairs + 1):
        loads = run([sys.executable, "-c", JSON_LOADS, str(trace)])
        output = str(folder / str(pair))
        report = run(
            [sys.executable, "-m", "analyzer", "analyze", "--no-cache", str(trace), "-o", output]
        )
        seconds = float(loads.printed)
        ratios.append(report.seconds / seconds)
        megabytes.append(report.megabytes)
        print(
            f"pair {pair}: json.loads {seconds:.2f} s ({loads.megabytes:,.0f} MB), "
            f"analyze {report.seconds:.2f} s ({report.megabytes:,.0f} MB), ratio {ratios[-1]:.2f}"
        )
    ratio, largest = statistics.median(ratios), max(megabytes)
    print(f"median ratio {ratio:.2f} (limit {LARGEST_RATIO})")
    print(f"largest memory {largest:,.0f} MB (limit {LARGEST_MB:,.0f})")
    return ratio <= LARGEST_RATIO and largest <= LARGEST_MB


def main() -> None:
    """Makes the trace, measures, and says by exit status whether the limits are kept."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--megabytes", type=int, default=100, help="size of the trace's text")
    options.add_argument("--pairs", type=int, default=5)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        trace = Path(name) / "rank0.json.gz"
        with gzip.open(SAMPLE, "rt") as sample, gzip.open(trace, "wt", compresslevel=6) as packed:
            packed.writelines(repeated(sample.read(), given.megabytes * 10**6))
        kept = measure(trace, Path(name) / "report", given.pairs)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
