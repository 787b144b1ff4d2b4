"""Do ranks wait for one late rank, or a few? Then mending those helps.

The waiting for a rank is what it costs the others. A late rank costs more than jitter explains;
other waiting is told in skew.py. Times are ns per rank and step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analyzer.classify.classes import (
    COMM_WAIT,
    COMPUTE,
    COPY,
    DATA_LOADING,
    DEPENDENCY,
    HOST_OTHER,
    HOST_SYNC,
    LAUNCH,
    OPTIMIZER,
    UNEXPLAINED,
)
from analyzer.findings.communicating import late_because, late_reasons, mismatched
from analyzer.findings.finding import (
    MOST_PLACES,
    Finding,
    Outcome,
    Passed,
    Place,
    View,
    percent,
    sentences,
)
from analyzer.ranks.keys import SEND_RECV
from analyzer.ranks.pool import Job
from analyzer.ranks.stragglers import CLOCKED, Late

# The headline names ranks that cost this part of the dearest: the rest would hardly be felt.
_BULK = 0.25
_MOST_NAMES = 4
MOST_STEPS = 6

# Class that a late rank has more of -> how the headline says so, and what to do about it.
_CLAUSE = {
    COMPUTE: "computing takes longer {}",
    OPTIMIZER: "the optimizer takes longer {}",
    DATA_LOADING: "data loading takes longer {}",
    COPY: "copies take longer {}",
    LAUNCH: "kernels are launched late {}",
    HOST_SYNC: "blocking calls take longer {}",
    HOST_OTHER: "other host work takes longer {}",
    DEPENDENCY: "streams wait longer for each other {}",
    UNEXPLAINED: "unexplained idle time is longer {}",
}
_CURE = {
    COMPUTE: "Computing: look for hardware that is throttled or of another kind (clocks, power, "
    "temperature), and for more work than the others have: longer samples, padding, uneven "
    "layers.",
    OPTIMIZER: "Optimizer: look for more weights than the others update, and for slower hardware.",
    DATA_LOADING: "Data loading: look at the storage, the workers and the part of the data of that "
    "rank.",
    COPY: "Copies: look for copies that only that rank makes (logging, saving), and for memory "
    "that is unpinned or far from its GPU.",
    LAUNCH: "Late launches: the host of that rank is slow or shared. Pin its process to cores of "
    "its own near its GPU, look for other work on them (loader workers, other jobs), and for "
    "Python that only that rank runs.",
    HOST_SYNC: "Blocking calls: move .item(), printing and logging of that rank out of the step.",
    HOST_OTHER: "Other host work: look for memory allocation and for a profiler that records more "
    "on that rank.",
    DEPENDENCY: "Streams: look for stream.wait_event and wait_stream that only that rank meets.",
    UNEXPLAINED: "Unexplained: record that rank once with with_stack=True. Garbage collection, a "
    "checkpoint or another process on the GPU leave no record.",
}
_NO_CURE = "The trace does not tell why: move its process to another GPU to see what is slow."


def late_rank(view: View) -> Outcome:
    """Ranks the others wait for; None where nothing was joined or clocks contradict each other."""
    job, limit = view.job, view.limits.late_rank_share
    together = job.together
    if together.method != CLOCKED:
        return None
    if not together.late:
        return Passed(nobody(view))
    if not fires(view):
        return view.below("Waiting for late ranks", caused(job, together.late), limit)
    named = headline(view)
    removes = _removed(view, named)
    return Finding(
        id="late-rank",
        title=f"{_names(named)} {'keeps' if len(named) == 1 else 'keep'} the others waiting",
        attack=f"Fix {_names(named, 'rank')}",
        why=_why(view, named),
        clause=_because(view, named),
        time_class=COMM_WAIT,
        ns=removes[COMM_WAIT],
        step_ns=job.step_ns,
        saved_ns=sum(removes.values()),
        because=sentences(
            f"{view.both(job.mean_ns[COMM_WAIT])} pass waiting for a rank that has not arrived.",
            *(of_rank(view, late) for late in together.late[:MOST_PLACES]),
            _worth(view, named, removes),
        ),
        so=sentences(*cures(view, named)),
        check=view.check("waiting for other ranks", limit),
        where=[
            Place(f"rank {late.rank}", caused(job, [late]), None)
            for late in together.late[:MOST_PLACES]
        ],
        confidence=view.confidence(
            mismatched(job),
            job.together.perhaps_several,
            not all(late_reasons(view, late) for late in named),
        ),
        whatif="no-straggler",
        removes=removes,
    )


def headline(view: View) -> list[Late]:
    """The late ranks of the headline, the dearest first."""
    late = view.job.together.late
    return [one for one in late if one.cost_ns >= _BULK * late[0].cost_ns]


def fires(view: View) -> bool:
    """Whether late ranks cause enough waiting."""
    ns = caused(view.job, view.job.together.late)
    return ns > 0 and view.job.share(ns) >= view.limits.late_rank_share


def caused(job: Job, late: Sequence[Late]) -> float:
    """Waiting for these ranks, mean over all ranks; costs may be of more steps than the mean is."""
    return min(job.mean_ns[COMM_WAIT], sum(one.cost_ns for one in late) / len(job.ranks))


def _removed(view: View, named: Sequence[Late]) -> dict[str, float]:
    """What goes once these ranks are like the others: the waiting, and what they do more of.

    The others' step shortens by their waiting, the late ranks' by their excess; the mean by both.
    """
    job = view.job
    removes = {COMM_WAIT: caused(job, named)}
    for late in named:
        for name, ns in late.because:
            removes[name] = min(job.mean_ns[name], removes.get(name, 0.0) + ns / len(job.ranks))
    return removes


def _worth(view: View, named: Sequence[Late], removes: Mapping[str, float]) -> str:
    like = f"With {_names(named, 'rank')} like the others"
    gain = view.study.gains.get("no-straggler")
    if gain is not None:
        return f"{like} the step is {percent(max(gain.share, 0.0))} shorter in the replay."
    them = "it" if len(named) == 1 else "them"
    own = sum(ns for name, ns in removes.items() if name != COMM_WAIT)
    return (
        f"{like}, {view.ms(removes[COMM_WAIT])} of waiting and {view.ms(own)} of what delays "
        f"{them} would go, in the mean over the ranks."
    )


def _names(late: Sequence[Late], word: str = "Rank") -> str:
    """ "Rank 3", "Ranks 0 and 6", "Ranks 0, 1, 2, 3 and 9 more"."""
    ranks = [one.rank for one in late]
    shown = [str(rank) for rank in sorted(ranks[:_MOST_NAMES])]
    if len(ranks) > _MOST_NAMES:
        shown.append(f"{len(ranks) - _MOST_NAMES} more")
    return f"{word}{'s' if len(ranks) > 1 else ''} {listed(shown)}"


def listed(words: Sequence[str]) -> str:
    """ "0", "0 and 6", "0, 1 and 6"."""
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def _why(view: View, named: Sequence[Late]) -> str:
    """What the headline adds: how much of the waiting is for these ranks, because of what."""
    these = {1: "this one", 2: "these two"}.get(len(named), f"these {len(named)}")
    part = caused(view.job, named) / view.job.mean_ns[COMM_WAIT]
    share = "" if part >= 0.9995 else f"{percent(part)} of all they wait, "
    return f"Ranks wait that long for {these}, {share}{_because(view, named)}."


def _because(view: View, named: Sequence[Late]) -> str:
    """One clause where all have the same cause, else one for each of the first two causes."""
    by_cause: dict[str, list[tuple[Late, float]]] = {}
    for late in named[:_MOST_NAMES]:
        for name, ns in late_reasons(view, late)[:1]:
            by_cause.setdefault(name, []).append((late, ns))
    if not by_cause:
        return f"for a reason that is not in {'its trace' if len(named) == 1 else 'their traces'}"
    alone = [len(rows) for rows in by_cause.values()] == [len(named[:_MOST_NAMES])]
    others = "the other" if len(view.job.ranks) == 2 else "the others"
    clauses = []
    for name, rows in [*by_cause.items()][:2]:
        rows.sort(key=lambda row: row[0].rank)
        place = "there" if alone else f"on {_names([late for late, _ in rows], 'rank')}"
        more = listed([view.ms(ns) for _, ns in rows]).replace(" ms", "", len(rows) - 1)
        clauses.append(f"{_CLAUSE[name].format(place)} ({more} more than on {others})")
    return f"because {listed(clauses)}"


def of_rank(view: View, late: Late) -> str:
    """One late rank: what it costs, how often and when it is last, and what it does more of."""
    reason = late_because(view, late)
    return (
        f"Rank {late.rank}: {view.ms(late.cost_ns)} of the others' time per step, summed over "
        f"them; last in {percent(late.last_share)} of its collectives, {_steps(view.job, late)}; "
        f"{reason[0].lower()}{reason[1:]}"
    )


def _steps(job: Job, late: Late) -> str:
    """In which steps, by number where they are few."""
    used = {step.index for member in job.members for step in member.digest.used}
    if len(late.steps) == len(used):
        return "in every step"
    shown = [str(index) for index in late.steps[:MOST_STEPS]]
    if len(late.steps) > MOST_STEPS:
        shown.append("others")
    return f"in {len(late.steps)} of {len(used)} steps ({listed(shown)})"


def cures(view: View, named: Sequence[Late]) -> list[str]:
    """What to do, by cause, each once."""
    causes = [late_reasons(view, late)[:1] for late in named]
    return list(dict.fromkeys(_CURE[c[0][0]] if c else _NO_CURE for c in causes))


def nobody(view: View) -> str:
    """That no rank is late, with the one that comes nearest to it; empty where some are."""
    together = view.job.together
    if together.late or together.method != CLOCKED:
        return ""
    cost = together.cost_ns
    if not any(cost.values()):
        return "No rank is late: none makes the others wait."
    dearest = max(cost, key=lambda rank: (cost[rank], -rank))
    each, limit = cost[dearest] / (len(view.job.ranks) - 1), view.limits.noise_share
    costs = (
        f"rank {dearest} makes the others wait most, {view.ms(each)} each per step "
        f"({percent(view.job.share(each))})"
    )
    if view.job.share(each) >= limit:
        return f"No rank is late throughout: {costs}, {_yet_not_late(view.job)}."
    return (
        f"No rank is late: {costs}; a late one costs {percent(limit)} or more, and more than "
        "jitter explains."
    )


def in_pipeline(job: Job) -> bool:
    """Whether most waiting, hidden or not, is in sends and receives."""
    waits = [(c.kind, c.wait_ns or 0.0) for c in job.collectives]
    return 2 * sum(ns for kind, ns in waits if kind == SEND_RECV) > sum(ns for _, ns in waits)


def _yet_not_late(job: Job) -> str:
    """Why a rank that the others wait for is not called late."""
    if in_pipeline(job):
        return "but works no longer than its peers"
    sole = job.together.sole
    when = in_steps(job, sole) if sole else ""
    return f"most of it in {when}" if when else "no more than jitter may explain"


def in_steps(job: Job, late: Late) -> str:
    """ "step 7", "steps 3 and 7"; empty where it is all of them or too many to list."""
    used = {step.index for member in job.members for step in member.digest.used}
    if len(late.steps) == len(used) or len(late.steps) > MOST_STEPS:
        return ""
    return f"step{'s' if len(late.steps) > 1 else ''} {listed([str(i) for i in late.steps])}"
