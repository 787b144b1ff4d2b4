"""Fits as plain values: ns become ms, latencies us, and what is missing gets a reason."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.report import scaling as out
from analyzer.scaling.fit import USL, Fitted, ScalingFit
from analyzer.scaling.growth import FAMILIES
from analyzer.scaling.links import fit_links
from analyzer.scaling.observe import Observation

NS_PER_MS = 1e6
NS_PER_US = 1e3


def law(fitted: Fitted, found: ScalingFit) -> out.FittedLaw:
    """A law with its parameters in ms."""
    weak = fitted.remark.startswith("weak")
    ms = {
        name.replace("_ns", "_ms"): value / NS_PER_MS
        if value is not None and name.endswith("_ns")
        else value
        for name, value in fitted.parameters.items()
    }
    said = fitted.reason or fitted.remark
    if fitted.id == USL and not fitted.reason and fitted.parameters["peak"] is None:
        said = "; ".join(filter(None, (said, "no peak: nothing grows with the square of N")))
    return out.FittedLaw(
        id=fitted.id,
        parameters=ms,
        loo_error=fitted.loo_error,
        best=fitted.id == found.best,
        support="none" if fitted.loo_error is None else "weak" if weak else "full",
        reason=said,
    )


def classes(found: ScalingFit) -> list[out.FittedClass]:
    """Growth of every class that takes time, most on the largest run first."""
    seen, law = found.seen, found.by_class
    at = {o.n: law.classes_at(o.n) for o in seen}
    rows = []
    for name, fitted in law.fits.items():
        if fitted.trend == "none":
            continue
        rows.append(
            out.FittedClass(
                class_=name,
                family=fitted.family,
                text=FAMILIES[fitted.family][1],
                terms=[(shape, ns / NS_PER_MS) for shape, ns in fitted.terms],
                trend=fitted.trend,
                points=[(o.n, o.classes.get(name, 0.0) / NS_PER_MS) for o in seen],
                fit=[(o.n, fitted.at(o.n) / NS_PER_MS) for o in seen],
                residual=fitted.rms,
            )
        )
    exposed = [(o.n, o.traffic.exposed / NS_PER_MS) for o in seen]
    if any(ms for _, ms in exposed):
        moved = law.moved
        first, last = exposed[0][1], exposed[-1][1]
        still = abs(last - first) <= 0.1 * max(first, last)
        rows.append(
            out.FittedClass(
                class_="comm_transfer",
                family=moved.family,
                text=f"{FAMILIES[moved.family][1]}; exposed is what compute does not hide of it",
                terms=[(shape, ns / NS_PER_MS) for shape, ns in moved.terms],
                trend="flat" if still else "grows" if last > first else "falls",
                points=exposed,
                fit=[(n, by["comm_transfer"] / NS_PER_MS) for n, by in at.items()],
                residual=moved.rms,
            )
        )
    return sorted(rows, key=lambda row: -row.points[-1][1])


def links(seen: Sequence[Observation]) -> list[out.FittedLink]:
    """Latency and bandwidth of each kind and group."""
    return [
        out.FittedLink(
            kind=found.kind,
            group=found.group,
            rows=len(found.rows),
            latency_us=None if found.link is None else found.link.latency / NS_PER_US,
            bandwidth_gbs=None if found.link is None else found.link.bandwidth,
            residual=found.rms,
            reason=found.reason
            or (
                "" if found.link and found.link.bandwidth else "the bytes take no time of their own"
            ),
        )
        for found in fit_links([(o.n, o.collectives) for o in seen])
    ]
