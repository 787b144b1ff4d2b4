"""Is a job of 1,024 ranks reported from its digests within a minute, 2 GB and a 2 MB page?

The digests of a simulated sample go on for a thousand collectives and are taken for as many ranks
as asked: one is the slow rank, eight share a host, every host has a clock of its own. Then the
command reads all digests and writes its outputs, in a process of its own and on two cores.

    python benchmarks/reduce.py            # exit status 1 when over the limits
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import msgspec

from analyzer.classify.program import Program, packed
from analyzer.classify.tables import CollectiveRecord
from analyzer.config import Settings
from analyzer.digest import DeviceSpan, RankDigest, StepRecord, Strip, digest, save

SAMPLE = Path(__file__).resolve().parents[1] / "sample_traces/slow-rank-4gpu"
SLOW, HEALTHY = 2, (0, 1, 3)
RANKS_PER_HOST = 8
CLOCK_ERROR_NS = 400_000
GAP_NS = 1_000_000_000
LONGEST_S = 60.0
LARGEST_MB = 2000.0
LARGEST_HTML_MB = 2.0


def write_job(folder: Path, ranks: int, turns: int) -> None:
    """One digest a rank."""
    clock = random.Random(0)
    samples = {
        r: repeated(digest(SAMPLE / f"rank{r}.json.gz", Settings()), turns)
        for r in (SLOW, *HEALTHY)
    }
    for rank in range(ranks):
        if rank % RANKS_PER_HOST == 0:
            ahead = clock.randrange(-CLOCK_ERROR_NS, CLOCK_ERROR_NS)
        sample = samples[SLOW if rank == SLOW else HEALTHY[rank % len(HEALTHY)]]
        save(as_rank(sample, rank, ranks, ahead), folder / f"rank{rank}.digest")


def as_rank(sample: RankDigest, rank: int, ranks: int, ahead: int) -> RankDigest:
    """The digest as of another rank of a larger job, by a clock that is `ahead` ns."""
    changed = msgspec.structs.replace
    return changed(
        sample,
        meta=replace(
            sample.meta,
            name=f"rank{rank}.json.gz",
            rank=rank,
            world_size=ranks,
            host=f"node{rank // RANKS_PER_HOST}",
        ),
        steps=[later(step, ahead) for step in sample.steps],
        span=later(sample.span, ahead),
        strip=None if sample.strip is None else later(sample.strip, ahead),
        # The exporter cuts long lists of ranks so.
        collectives=[
            changed(later(c, ahead), ranks=f"[0, 1, 2, ..., {ranks - 1}]", group_size=ranks)
            for c in sample.collectives
        ],
        exposed_comm=[(start + ahead, end + ahead) for start, end in sample.exposed_comm],
        program=None if sample.program is None else moved(sample.program, ahead),
    )


def moved(program: Program, ns: int) -> Program:
    """The same work and calls, `ns` later."""
    work, host = program.columns()
    return msgspec.structs.replace(
        program,
        work=packed(replace(work, ts=work.ts + ns)),
        host=packed(replace(host, time=host.time + ns)),
    )


def repeated(sample: RankDigest, turns: int) -> RankDigest:
    """The digest of a recording that goes on as this one, `turns` times in all."""
    changed = msgspec.structs.replace
    period = max(c.end for c in sample.collectives) - sample.steps[0].start + GAP_NS
    steps, collectives, exposed = [], [], []
    for turn in range(turns):
        ahead, number = turn * period, turn * len(sample.steps)
        steps += [changed(later(s, ahead), index=s.index + number) for s in sample.steps]
        exposed += [(start + ahead, end + ahead) for start, end in sample.exposed_comm]
        collectives += [
            changed(
                later(c, ahead),
                sequence=None
                if c.sequence is None
                else c.sequence + turn * len(sample.collectives),
                step=None if c.step is None else c.step + number,
                launched=None if c.launched is None else c.launched + number,
            )
            for c in sample.collectives
        ]
    return changed(sample, steps=steps, collectives=collectives, exposed_comm=exposed)


Timed = TypeVar("Timed", StepRecord, DeviceSpan, Strip, CollectiveRecord)


def later(timed: Timed, ns: int) -> Timed:
    """The same, `ns` later."""
    return msgspec.structs.replace(timed, start=timed.start + ns, end=timed.end + ns)


def measure(folder: Path, output: Path) -> bool:
    """Prints what the report took; whether all limits are kept."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    command = [sys.executable, "-m", "analyzer", "analyze", str(folder), "-o", str(output)]
    with tempfile.TemporaryFile() as printed:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=printed, stderr=printed)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        said = printed.read().decode()
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{said}")
    # Linux counts in KiB, macOS in bytes.
    megabytes = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
    page = (output / "report.html").stat().st_size / 1e6
    late = json.loads((output / "report.json").read_text("utf-8"))["ranks"]["late"]
    print(
        f"report {seconds:.1f} s (limit {LONGEST_S:.0f}), {megabytes:,.0f} MB "
        f"(limit {LARGEST_MB:,.0f}), page {page:.2f} MB (limit {LARGEST_HTML_MB:.0f})"
    )
    print(f"late ranks {[row['rank'] for row in late]}, planted [{SLOW}]")
    fits = seconds <= LONGEST_S and megabytes <= LARGEST_MB and page <= LARGEST_HTML_MB
    return fits and [row["rank"] for row in late] == [SLOW]


def main() -> None:
    """Makes the digests, measures, and says by exit status whether the limits are kept."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--ranks", type=int, default=1024)
    options.add_argument("--turns", type=int, default=20, help="of the sample's 49 collectives")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "digests"
        folder.mkdir()
        write_job(folder, given.ranks, given.turns)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        print(f"{given.ranks:,} digests of {size:.1f} MB together")
        kept = measure(folder, Path(name) / "report")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
