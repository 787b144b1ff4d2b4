"""How are the numbers in a comparison's sentences written? As the report's: the step has three
significant digits at least, and what is not zero does not print as zero.
"""

from __future__ import annotations

import math

# Class -> what it is called in a sentence.
NAMES = {
    "compute": "computing",
    "optimizer": "the optimizer",
    "comm_transfer": "exposed transfer",
    "comm_wait": "waiting for ranks",
    "comm_unsplit": "exposed communication",
    "data_loading": "data loading",
    "copy": "memory copies",
    "launch": "launch overhead",
    "host_sync": "blocking calls",
    "host_other": "other host work",
    "dependency": "waiting for another stream",
    "unexplained": "unexplained time",
}


def ms(value: float, step_ms: float) -> str:
    """Milliseconds with the decimals of the step `step_ms`."""
    decimals = 0 if step_ms >= 10_000 else 1
    if 0 < step_ms < 10:
        decimals = min(6, 2 - math.floor(math.log10(step_ms)))
    text = f"{value:,.{decimals}f}"
    if value > 0 and not text.strip("0.,"):
        text = f"<{10.0**-decimals:.{decimals}f}"
    return f"{text} ms"


def percent(fraction: float) -> str:
    """A fraction as a percentage with one decimal."""
    text = f"{100 * fraction:.1f}"
    return "<0.1 %" if fraction > 0 and text == "0.0" else f"{text} %"
