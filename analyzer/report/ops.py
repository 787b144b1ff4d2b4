"""Which host op launched how much device work? ms per rank and step, as far as steps were kept."""

from __future__ import annotations

from collections import Counter

import numpy as np

from analyzer.ranks.pool import Job
from analyzer.report.document import Op
from analyzer.trace.schema import NO_ID

NS_PER_MS = 1e6
MOST_OPS = 40
NO_OP = "(no operator recorded)"


def ops(job: Job) -> list[Op]:
    """The ops whose work takes most device time; none where no device worked."""
    count: Counter[str] = Counter()
    ns: Counter[str] = Counter()
    pairs = 0
    for member in job.members:
        program = member.digest.program
        if program is None:
            continue
        work, _ = program.columns()
        inside = np.isin(work.step, [step.index for step in member.digest.used])
        pairs += len(np.unique(work.step[inside]))
        names, row = np.unique(work.op[inside], return_inverse=True)
        number, time = np.bincount(row), np.bincount(row, work.dur[inside])
        for op, n, total in zip(names.tolist(), number.tolist(), time.tolist(), strict=True):
            name = NO_OP if op == NO_ID else program.ops[op]
            count[name] += n
            ns[name] += int(total)
    largest = sorted(ns, key=lambda name: (-ns[name], name))
    if not pairs:
        return []
    rows = [
        Op(name=name, count=count[name] / pairs, ms=ns[name] / pairs / NS_PER_MS)
        for name in largest[:MOST_OPS]
    ]
    rest = largest[MOST_OPS:]
    if rest:
        n, total = sum(count[name] for name in rest), sum(ns[name] for name in rest)
        name = f"({len(rest)} more names)"
        rows.append(Op(name=name, count=n / pairs, ms=total / pairs / NS_PER_MS))
    return rows
