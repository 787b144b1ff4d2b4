"""What may stand in a file this program writes? One JSON Schema for all its documents."""

from __future__ import annotations

from typing import Any

import msgspec

from analyzer.report.comparison import Comparison
from analyzer.report.document import Report
from analyzer.report.scaling import ScalingReport

DOCUMENTS = (Report, Comparison, ScalingReport)


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12): a file is one of the documents."""
    either, parts = msgspec.json.schema_components(DOCUMENTS, ref_template="#/$defs/{name}")
    return {"anyOf": list(either), "$defs": parts}
