"""How long does a replay take? `python benchmarks/replay.py [--kernels 5000] [--ranks 8]`.

A simulated job is written, read, and replayed: the limit is one second per edit on one core for
8 ranks with 5,000 device activities per step (six steps). Prints the time of building the graph, of
one replay alone, and of the whole study (all edits with their curves, the sequence, the path) over
the number of replays in it. Exits 1 above the limit.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "sample_traces"))

from job import step_work
from simulate import SCENARIOS, write_sample

from analyzer import api
from analyzer.config import Settings
from analyzer.whatif import study as studying
from analyzer.whatif.assemble import graph
from analyzer.whatif.graph import Graph
from analyzer.whatif.replay import Inputs, Run, recorded, replay

LIMIT_S = 1.0


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kernels", type=int, default=5000)
    parser.add_argument("--ranks", type=int, default=8)
    options = parser.parse_args()
    per_layer = sum(1 for _ in step_work(replace(SCENARIOS[0], layers=1)))
    layers = options.kernels // per_layer + 1
    scenario = replace(SCENARIOS[3], layers=layers, ranks=options.ranks, name="replayed")
    with tempfile.TemporaryDirectory() as folder:
        write_sample(scenario, Path(folder))
        found = api.digests([folder], Settings())
        job = api.load(found, settings=Settings()).job
    begin = time.perf_counter()
    made = graph(job.members, job.together)
    built = time.perf_counter()
    next(replay(made, [recorded(made)]))
    alone = time.perf_counter()
    count = 0

    def counted(graph: Graph, variants: Iterable[Inputs]) -> Iterator[Run]:
        nonlocal count
        for run in replay(graph, variants):
            count += 1
            yield run

    studying.replay = counted  # type: ignore[assignment]
    studying.study(job, Settings().thresholds)
    end = time.perf_counter()
    each = (end - alone) / count
    print(f"{len(made.ts):,} activities, {len(made.tasks):,} tasks")
    print(f"graph {built - begin:.2f} s, one replay {alone - built:.2f} s")
    print(f"study {end - alone:.2f} s for {count} replays: {each:.3f} s each (limit {LIMIT_S} s)")
    return int(max(each, alone - built) > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
