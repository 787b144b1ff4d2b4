"""How is a report on several world sizes painted into files and onto the terminal?"""

from __future__ import annotations

from analyzer.render import scaling_page, scaling_text
from analyzer.render.files import Painters
from analyzer.report.scaling import ScalingReport, dumps

SCALING: Painters[ScalingReport] = Painters(
    formats={
        "html": ("scaling.html", scaling_page.render),
        "json": ("scaling.json", lambda report: dumps(report).decode()),
        "markdown": ("scaling.md", scaling_text.markdown),
    },
    text=scaling_text.terminal,
    line=scaling_text.verdict_line,
)
