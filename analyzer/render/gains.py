"""What is a fix worth, in words? A replayed gain with its interval, or a share, never mixed up.

A gain is a multiple of today's step; the part of the step it takes off is 1 - 1/gain. A share says
what were left if just that time went: beside replayed gains it carries "by share".
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.render.format import NOISE, NOT_BOUNDED, NOT_MEASURABLE, multiple, significant
from analyzer.report.document import After, Edit, Finding, Gain, Report

REPLAY = "replay"


def replayed(finding: Finding) -> bool:
    """Whether the finding's gain is one, not a share."""
    return finding.gain.basis == REPLAY


def edit_of(report: Report, finding: Finding) -> Edit | None:
    """The replayed what-if that a finding's gain comes from, None without one."""
    if not replayed(finding):
        return None
    return next((edit for edit in report.whatif.edits if edit.id == finding.whatif), None)


def noisy(finding: Finding) -> bool:
    """Whether what a fix gives cannot be told from noise: by its replay, else by its share."""
    return finding.gain.noise if replayed(finding) else finding.share < NOISE


def first_noise(listed: Sequence[Finding]) -> int:
    """Where in `listed` only noise follows; its length when the last one stands out."""
    loud = (place for place, item in enumerate(listed, start=1) if not noisy(item))
    return max(loud, default=0)


def removed(speedup: float | None) -> float:
    """The part of the step that a speedup takes off; 0 where it is unknown or slows the step."""
    return 0.0 if speedup is None else max(0.0, 1 - 1 / speedup)


def part(finding: Finding) -> float:
    """The part of the step that a replayed fix takes off, else the finding's share."""
    if replayed(finding):
        return removed(finding.gain.speedup)
    return finding.share


def column(report: Report) -> str:
    """What the column of multiples holds."""
    return "gain" if report.whatif.basis == REPLAY else "by share"


def worth(report: Report, gain: Gain) -> str:
    """The multiple; "by share" behind a share where the column says gain."""
    words = multiple(gain.speedup, NOT_MEASURABLE)
    bound = gain.speedup is not None and gain.basis != REPLAY and column(report) == "gain"
    return f"{words} by share" if bound else words


def interval(item: Gain | Edit) -> str:
    """The 95 % interval of a multiple, empty without one."""
    if item.lo is None or item.hi is None:
        return ""
    return f"{significant(item.lo)} to {significant(item.hi)}"


def with_interval(item: Gain | Edit, words: str) -> str:
    """`words` with the interval in brackets, where there is one."""
    return f"{words} ({interval(item)})" if interval(item) else words


def in_full(finding: Finding) -> str:
    """The worth of a finding as a phrase: what the number is and how sure."""
    gain, bounds = finding.gain, interval(finding.gain)
    words = multiple(gain.speedup, NOT_MEASURABLE)
    if not replayed(finding):
        return "share, not gain"
    return f"replayed gain {words}" + (f" (95 % interval {bounds})" if bounds else "")


def ceiling(after: After | None, value: float | None) -> str:
    """A ceiling of the run an edit leaves: unbounded where nothing is left that does not scale."""
    unbounded = after is not None and (after.f == 0 or after.reason == NOT_BOUNDED)
    return multiple(value, "unbounded" if unbounded else NOT_MEASURABLE)


def after_words(after: After | None) -> str:
    """Serial fractions and ceilings once the fix is made; empty where nothing is known of them."""
    if after is None or after.f is None:
        return ""
    today = ceiling(after, after.ceiling_today)
    one = ceiling(after, after.ceiling_one_gpu)
    shares = f"f {significant(after.f)}, s {significant(after.s)}"
    return f"{shares}; ceiling 1/f {today}, ceiling 1/s {one}"
