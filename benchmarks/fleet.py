"""Are the traces of 1,024 ranks read and reported within ten minutes and 2 GB, by two processes?

The traces of a simulated sample with one slow rank are taken for as many ranks as asked. The
command reads all of them on two cores and writes its outputs, then once more with what its cache
has kept. Memory is the largest sum over its processes.

    python benchmarks/fleet.py             # exit status 1 when over the limits
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
import tempfile
from pathlib import Path

from peers import Cost, run

SAMPLE = Path(__file__).resolve().parents[1] / "sample_traces/slow-rank-4gpu"
SLOW, HEALTHY = 2, (0, 1, 3)
LONGEST_S = 600.0
LARGEST_MB = 2000.0


def write_job(folder: Path, ranks: int) -> int:
    """One trace a rank; bytes of all."""
    texts = {
        r: gzip.decompress((SAMPLE / f"rank{r}.json.gz").read_bytes()).decode()
        for r in (SLOW, *HEALTHY)
    }
    total = 0
    for rank in range(ranks):
        text = texts[SLOW if rank == SLOW else HEALTHY[rank % len(HEALTHY)]]
        path = folder / f"rank{rank}.json.gz"
        path.write_bytes(gzip.compress(as_rank(text, rank, ranks).encode(), 1))
        total += path.stat().st_size
    return total


def as_rank(text: str, rank: int, ranks: int) -> str:
    """The trace as of another rank of a larger job."""
    text = re.sub(r'"rank": \d+, "world_size": 4', f'"rank": {rank}, "world_size": {ranks}', text)
    text = re.sub(r'"(pg_size|Group size)": 4', rf'"\1": {ranks}', text)
    # The exporter cuts long lists of ranks so.
    return text.replace('"[0, 1, 2, 3]"', f'"[0, 1, 2, ..., {ranks - 1}]"')


def measure(folder: Path, output: Path, beside: list[str]) -> Cost:
    command = [sys.executable, "-m", "analyzer", "analyze", str(folder), "-o", str(output)]
    return run([*command, "--force", *beside])


def main() -> None:
    """Makes the traces, measures, and says by exit status whether the limits are kept."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--ranks", type=int, default=1024)
    given = options.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = str(Path(name) / "cache")
        folder, output = Path(name) / "traces", Path(name) / "report"
        folder.mkdir()
        size = write_job(folder, given.ranks)
        print(f"{given.ranks:,} traces of {size / 1e6:.0f} MB together")
        first = measure(folder, output, ["--jobs", "2"])
        again = measure(folder, output, ["--jobs", "2"])
        late = json.loads((output / "report.json").read_text("utf-8"))["ranks"]["late"]
    for word, cost in (("first", first), ("again", again)):
        print(
            f"{word}: {cost.wall:.0f} s (limit {LONGEST_S:.0f}), {cost.cpu:.0f} s of processor, "
            f"{cost.megabytes:,.0f} MB (limit {LARGEST_MB:,.0f})"
        )
    print(f"late ranks {[row['rank'] for row in late]}, planted [{SLOW}]")
    kept = first.wall <= LONGEST_S and first.megabytes <= LARGEST_MB
    sys.exit(0 if kept and [row["rank"] for row in late] == [SLOW] else 1)


if __name__ == "__main__":
    main()
