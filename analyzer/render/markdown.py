"""What goes on the pull request? A comment that updates itself, and the summary of a CI job.

Whole sections are dropped from the bottom to stay within the size GitHub accepts; names from a
trace are escaped so that they neither format, mention nor link.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from analyzer.render import (
    between_ranks,
    charts,
    gains,
    lead_numbers,
    path_words,
    plan_text,
    rank_tables,
    sentences,
    turns,
)
from analyzer.render.curve import TRUSTED
from analyzer.render.format import (
    NOT_MEASURABLE,
    StepScale,
    count,
    look,
    multiple,
    percent,
    plural,
)
from analyzer.render.github import clean_lines, escape, grid, table
from analyzer.render.svg import shown_classes
from analyzer.report.document import Finding, Report

COMMENT_LIMIT = 60_000
SUMMARY_LIMIT = 900_000
MOST_CAVEATS = 8
COMMENT_FINDINGS, SUMMARY_FINDINGS = 5, 10
# The wider ones are left to the page.
COMMENT_TABLES = ("late", "collectives", "groups", "efficiencies")
# Longest text of several sentences, which are the evidence.
SENTENCES = 2_000
BAR = 60


def comment(
    report: Report,
    comment_id: str = "default",
    report_url: str | None = None,
    picture: str | None = None,
) -> str:
    """The pull-request comment, at most 60,000 characters; the first line finds it again.

    `picture` is a file beside it that takes the place of the bar of letters.
    """
    head = [f"{marker(report.tool.name, 'report', comment_id)}\n{_heading(report)}"]
    body = [
        *_open_part(report, COMMENT_FINDINGS, picture),
        *(folded(*part) for part in _parts(report)),
    ]
    return fit([*head, *body], _foot(report, report_url), COMMENT_LIMIT)


def summary(report: Report) -> str:
    """The same for a job summary: ten findings, every section open."""
    body = [*_open_part(report, SUMMARY_FINDINGS), *(opened(*part) for part in _parts(report))]
    return fit([_heading(report), *body], _foot(report, None), SUMMARY_LIMIT)


def marker(tool: str, kind: str, comment_id: str) -> str:
    """The hidden line by which a comment is found again."""
    name = re.sub(r"[^\w.-]", "-", comment_id)
    return f"<!-- {tool}:{kind}:{name} -->"


def fit(sections: Sequence[str], foot: str, limit: int) -> str:
    """The sections that are not empty, dropped from the bottom until they fit, and the foot."""
    kept = [section for section in sections if section]
    cut = 0
    while True:
        note = f"{plural(cut, 'section')} left out, see the HTML report.\n\n" if cut else ""
        text = "\n\n".join([*kept, note + foot]) + "\n"
        if len(text) <= limit or len(kept) <= 1:
            return text
        kept.pop()
        cut += 1


def _heading(report: Report) -> str:
    return f"## {escape(report.verdict.text)}"


def _open_part(report: Report, most: int, picture: str | None = None) -> list[str]:
    return [
        lead_numbers.numbers(report),
        *_caveats(report),
        _findings(report, report.findings[:most]),
        f"![Step time by class](./{picture})" if picture else _bar(report),
    ]


def _caveats(report: Report) -> list[str]:
    kinds = {"error": "CAUTION", "warning": "WARNING"}
    blocks = []
    for severity, kind in kinds.items():
        found = [item for item in report.quality if item.severity == severity][:MOST_CAVEATS]
        lines = [
            f"> {escape(item.text)} {escape(sentences.forbids(item))}".rstrip() for item in found
        ]
        if lines:
            blocks.append("\n>\n".join([f"> [!{kind}]\n{lines[0]}", *lines[1:]]))
    return blocks


def _findings(report: Report, findings: Sequence[Finding]) -> str:
    if not findings:
        return sentences.findings(report)
    scale = sentences.scale_of(report)
    rows = [
        [
            str(place),
            escape(item.title, 120),
            scale.bare(item.ms),
            percent(item.share),
            gains.with_interval(item.gain, gains.worth(report, item.gain))
            + (", within noise" if gains.noisy(item) else ""),
            sentences.ceiling_after(item)
            + (r" \*" if sentences.lowers_ceiling(report, item) else ""),
            escape(item.confidence),
        ]
        for place, item in enumerate(findings, start=1)
    ]
    column = gains.column(report)
    drawn = table(f"# | <bottleneck | ms/step | share | {column} | ceiling | <confidence", rows)
    notes = [sentences.findings(report)]
    if any(sentences.lowers_ceiling(report, item) for item in findings):
        notes.append(rf"\* {sentences.LOWERS}")
    if len(report.findings) > len(findings):
        hidden = len(report.findings) - len(findings)
        notes.append(f"{plural(hidden, 'smaller finding')} not shown.")
    if report.passed:
        notes.append(f"{plural(len(report.passed), 'check')} passed.")
    return f"{drawn}\n\n{' '.join(notes)}"


def _bar(report: Report) -> str:
    mean = report.breakdown.measured
    if sum(mean.values()) <= 0:
        return ""
    bar = "".join(letters for _, letters in charts.text_bar(mean, BAR))
    key = "\n".join(charts.text_key(mean, sentences.scale_of(report)))
    return f"```text\n|{bar}|\n{clean_lines(key)} ms\n```"


def _parts(report: Report) -> list[tuple[str, str]]:
    return [
        ("How to attack and confirm", _actions(report)),
        ("If you fix them in turn", _in_turn(report)),
        ("Scaling", _scaling(report)),
        *([("Plan", plan_text.markdown(report.plan))] if report.plan else []),
        ("Where the step goes, rank by rank", _by_rank(report)),
        ("Why the device is idle", _idle(report)),
        ("Ranks and collectives", _between_ranks(report)),
        ("Kernels", _kernels(report)),
    ]


def folded(title: str, body: str) -> str:
    """A section that is closed at first."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def opened(title: str, body: str) -> str:
    """A section under a heading."""
    return f"### {title}\n\n{body}"


def _actions(report: Report) -> str:
    if not report.findings:
        return sentences.findings(report)
    return "\n\n".join(
        f"**{place}. {escape(item.title, 120)}**\n"
        f"- Because: {escape(item.because, SENTENCES)}\n- So: {escape(item.so, SENTENCES)}\n"
        f"- Check: {escape(item.check, SENTENCES)}"
        for place, item in enumerate(report.findings[:SUMMARY_FINDINGS], start=1)
    )


def _in_turn(report: Report) -> str:
    told = (turns.lead(report), turns.interaction(report), turns.quality(report))
    steps = turns.in_turn(report)
    path = [path_words.lead(report), path_words.slack(report)] if report.whatif.path else []
    parts = (
        " ".join(escape(words, 1000) for words in told if words),
        grid(steps) if steps else "",
        f"Critical path: {escape(' '.join(path), 1000)}" if path else "",
    )
    return "\n\n".join(part for part in parts if part)


def _scaling(report: Report) -> str:
    facts, scale = report.scaling, sentences.scale_of(report)
    told = (sentences.scaling(report), sentences.knee(report), sentences.whole_run(report))
    words = " ".join(escape(part) for part in told if part)
    if not facts.predict:
        return words
    rows = [
        [
            count(row.n) + (" (beyond what one trace tells)" if row.n > TRUSTED * facts.n else ""),
            scale.bare(row.step_ms),
            multiple(row.speedup),
            percent(row.efficiency),
            multiple(row.amdahl, NOT_MEASURABLE),
        ]
        for row in facts.predict
    ]
    return f"{words}\n\n{table('GPUs | ms/step | speedup | efficiency | Amdahl', rows)}"


def _by_rank(report: Report) -> str:
    words = escape(sentences.where(report), 2000)
    rows = charts.picked_ranks(report)
    parts, scale = report.breakdown, sentences.scale_of(report)
    classes = shown_classes([parts.measured, *(row.measured for _, row in rows)])
    if not classes:
        return words
    lines = [_rank_line("all ranks", parts.measured, classes, scale)]
    lines += [_rank_line(label, row.measured, classes, scale) for label, row in rows]
    head = " | ".join(["<", *(escape(look(name).label) for name in classes), "step"])
    return f"{words}\n\n{table(head, lines)}"


def _rank_line(
    label: str, ms: dict[str, float], classes: Sequence[str], scale: StepScale
) -> list[str]:
    cells = [scale.bare(ms.get(name, 0.0)) for name in classes]
    return [label, *cells, scale.bare(sum(ms.values()))]


def _idle(report: Report) -> str:
    scale = sentences.scale_of(report)
    rows = [[escape(item.text), scale.bare(item.ms)] for item in report.idle]
    words = escape(sentences.idle(report))
    return f"{words}\n\n{table('<cause | ms/step', rows)}" if rows else words


def _between_ranks(report: Report) -> str:
    told = (between_ranks.lead(report), between_ranks.clock(report))
    tables = (rank_tables.TABLES[name](report) for name in COMMENT_TABLES)
    words = " ".join(escape(part, 1000) for part in told if part)
    return "\n\n".join([words, *(grid(item) for item in tables if item is not None)])


def _kernels(report: Report) -> str:
    scale = sentences.scale_of(report)
    rows = [
        [escape(item.name, 72), count(item.count), scale.bare(item.ms), percent(item.share)]
        for item in report.kernels[:15]
    ]
    words = sentences.kernels(report)
    return f"{words}\n\n{table('<name | times | ms/step | share', rows)}" if rows else words


def _foot(report: Report, url: str | None) -> str:
    tool = f"{report.tool.name} {report.tool.version}, {escape(report.run.label, 60)}"
    if url is None:
        return tool
    return f"[Full report (HTML)]({safe(url)}), {tool}"


def safe(url: str) -> str:
    """An address that cannot end the link it stands in."""
    return re.sub(r"[\s()<>]", lambda found: f"%{ord(found[0]):02X}", url)
