"""What does the page on several world sizes say? One HTML file without scripts or references."""

from __future__ import annotations

from markupsafe import Markup

from analyzer.render import html, several, small_multiples, svg
from analyzer.render.curve import series_curve
from analyzer.report.scaling import ScalingReport


def render(report: ScalingReport) -> str:
    """The page; the same report gives the same bytes."""
    view = {
        "report": report,
        "several": several,
        "plan": report.plan,
        "dark_rules": svg.dark_rules(),
        "embedded": html.embedded(report),
        "curve": curve(report),
        "efficiency": small_multiples.efficiency(report),
        "fractions": small_multiples.fractions(report),
        "panels": small_multiples.panels(report),
        "loud": [item for item in report.quality if item.severity in html.LOUD],
    }
    return html.environment(several.scale_of(report)).get_template("several.html").render(view)


def curve(report: ScalingReport) -> Markup | None:
    """Measured sizes and the best law; None without one."""
    best = several.best(report)
    name = several.law_name(report, best.id) if best else ""
    return series_curve("curve", report, name=name, desc=several.quality(report))
