"""How long, on how many GPUs, at what price? The plan in sentences and tables.

Fixes are counted in the plan's order; what each is stands once, above the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.render import turns
from analyzer.render.format import (
    NOT_MEASURABLE,
    StepScale,
    count,
    duration,
    look,
    multiple,
    plural,
)
from analyzer.render.rank_tables import Grid, Head
from analyzer.report.document import Plan, PlanPath, PlanRow, Road

GUESS = "beyond four times what was measured"
# A limit found there is reached nowhere.
MANY = 2**18


def lead(plan: Plan) -> str:
    """What the run takes today, and what the fixes planned with are."""
    now = f"Today the whole run takes {duration(plan.today_s)} on {plural(plan.n, 'GPU')}"
    hours = plan.n * plan.today_s / 3600
    now += f", {_whole(hours)} GPU-hours"
    if plan.price is not None:
        now += f" or {_whole(hours * plan.price)} at {plan.price:g} per GPU-hour"
    return f"{now}. {order(plan)}"


def order(plan: Plan) -> str:
    """The fixes in their order, or why there is none."""
    if not plan.order:
        return f"No fix is planned with: {plan.reason}."
    listed = "; ".join(f"{at}. {turns.name(edit)}" for at, edit in enumerate(plan.order, start=1))
    return f"Fixes in the order in which they gain: {listed}."


def rows(plan: Plan) -> Grid:
    """A row for each number of GPUs; days, GPU-hours and cost as it is and after fixes."""
    counts = sorted({row.fixes for row in plan.rows})
    heads = [Head("GPUs")]
    for fixes in counts:
        words = "as it is" if fixes == 0 else _after(fixes)
        heads += [Head(words), Head("GPU-hours")]
        if plan.price is not None:
            heads.append(Head("cost"))
    table = []
    for n in dict.fromkeys(row.n for row in plan.rows):
        mine = [row for row in plan.rows if row.n == n]
        line = [count(n) + (" *" if mine[0].beyond and mine[0].step_ms else "")]
        for row in mine:
            line += _cells(row, plan.price is not None)
        table.append(line)
    notes = [f"* {GUESS}: a guess."] if any(r.beyond and r.step_ms for r in plan.rows) else []
    notes += list(dict.fromkeys(f"{row.reason}." for row in plan.rows if row.reason))
    return Grid("Length of the whole run, and what it costs", heads, table, " ".join(notes))


def short_rows(plan: Plan) -> Grid:
    """The same in fewer columns, for a terminal: the cost, or the GPU-hours without a price."""
    full = rows(plan)
    each = 2 if plan.price is None else 3
    kept = [0, *(at for at in range(1, len(full.heads)) if (at - 1) % each != 1 or each == 2)]
    short = {"as it is": "as is", "after fix 1": "fix 1"}
    heads = [
        Head(short.get(name, name.replace("after fixes ", "fixes ")))
        for name in (full.heads[at].name for at in kept)
    ]
    return Grid(full.caption, heads, [[row[at] for at in kept] for row in full.rows], full.note)


def _after(fixes: int) -> str:
    return "after fix 1" if fixes == 1 else f"after fixes 1 to {fixes}"


def _cells(row: PlanRow, priced: bool) -> list[str]:
    if row.duration_s is None:
        return ["refused", "", ""][: 3 if priced else 2]
    cells = [duration(row.duration_s), _whole(row.gpu_hours)]
    return [*cells, _whole(row.cost)] if priced else cells


def _whole(value: float | None) -> str:
    return NOT_MEASURABLE if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def roads(plan: Plan) -> list[str]:
    """The two roads, each with its number; empty where only one is open."""
    return [_road(plan, road) for road in plan.roads]


def _road(plan: Plan, road: Road) -> str:
    faster = f"{multiple(road.speedup)} today's speed"
    run = f"{duration(road.duration_s)} on {plural(road.n, 'GPU')} ({faster})"
    if road.id == "gustafson":
        return (
            f"Let the batch grow with the GPUs (Gustafson): {run} for as many samples, in "
            f"{road.n / plan.n:.3g} times larger batches and as many times fewer steps; "
            f"{road.reason}."
        )
    what = "Take out what does not scale" if road.fixes else "Keep the job as it is"
    fixed = f", after {_fixes(road.fixes)}" if road.fixes else ""
    end = ""
    if road.limit_s is not None and road.limit_n is not None:
        far = road.limit_n >= MANY
        more = "whatever the number of GPUs" if far else f"on {plural(road.limit_n, 'GPU')}"
        end = f"; never below {duration(road.limit_s)}, {more}"
    return f"{what} (Amdahl): {run}{fixed}{end}."


def aim(plan: Plan) -> list[str]:
    """What reaches the target: the first path in full, the others in short; or why nothing does."""
    target = plan.target
    if target is None:
        return []
    wanted = f"{duration(target.target_s)} ({multiple(target.speedup)} today's speed)"
    if not target.paths:
        if target.ceiling_s <= target.target_s:
            return [f"{wanted} is not reached by what may be predicted. {target.text}"]
        where = "" if target.ceiling_n >= MANY else f", on {plural(target.ceiling_n, 'GPU')}"
        scale = StepScale.of(target.step_ms)
        left = ", ".join(f"{look(name).label} {scale.ms(ms)}" for name, ms in target.left_ms[:3])
        fixes = "with every fix, " if plan.order else ""
        return [
            f"{wanted} is not reachable: {fixes}the ceiling is "
            f"{duration(target.ceiling_s)}{where}.",
            f"Its step of {scale.ms(target.step_ms)} still is {left}. {target.text}",
        ]
    first, *others = target.paths
    lines = [f"{wanted} is reached {path(plan, first)}."]
    lines += [f"Or {path(plan, other)}." for other in others]
    return lines


def path(plan: Plan, found: PlanPath) -> str:
    """One path with its factors, which multiply to the whole."""
    fixes = f" after {_fixes(found.fixes)}" if found.fixes else ""
    factors = " x ".join(
        f"{factor.speedup:.4g} ({_named(factor.what)})" for factor in found.factors
    )
    whole = f"{factors} = {found.speedup:.4g}x" if len(found.factors) > 1 else factors
    cost = "" if found.cost is None else f", cost {_whole(found.cost)}"
    guess = f"; {GUESS}, so a guess" if found.beyond else ""
    return (
        f"on {plural(found.n, 'GPU')}{fixes}: {whole}, {duration(found.duration_s)}, "
        f"{_whole(found.gpu_hours)} GPU-hours{cost}{guess}"
    )


def _fixes(number: int) -> str:
    return "fix 1" if number == 1 else f"fixes 1 to {number}"


def _named(what: str) -> str:
    return "more GPUs" if what == "gpus" else turns.name(what)


def basis(plan: Plan) -> str:
    """Where the factors come from."""
    kinds = (
        {factor.basis for path in plan.target.paths for factor in path.factors}
        if plan.target
        else set()
    )
    words = {"replay": "replayed", "fit": "fitted", "classes": "predicted class by class"}
    said = " or ".join(words[kind] for kind in sorted(kinds) if kind in words)
    return f"Every factor is {said}, none is a rule of thumb." if said else ""


def lines(plan: Plan) -> Sequence[str]:
    """Everything but the table, as sentences."""
    return [*aim(plan), *roads(plan)]
