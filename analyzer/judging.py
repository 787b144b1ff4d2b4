"""What follows from a finished document? Gates, what a GitHub job is told, and the exit code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from analyzer.config import Settings
from analyzer.options import Target, Terminal
from analyzer.render import actions, compare_words
from analyzer.render.painting import Painting
from analyzer.report import gates
from analyzer.report.comparison import Comparison, Gate
from analyzer.report.document import Report
from analyzer.report.gates import Condition, Demand

GATE_FAILED, NOT_COMPARABLE = 1, 4
SUMMARY, OUTPUTS = "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"


@dataclass(frozen=True)
class Judging:
    """What is demanded, and who is told."""

    demands: list[Demand]
    exit_zero: bool
    github: bool

    @classmethod
    def of(
        cls,
        fail_on: Sequence[Condition],
        warn_on: Sequence[Condition],
        settings: Settings,
        *,
        compared: bool,
        exit_zero: bool,
        github: bool,
    ) -> Judging:
        """The gates of the command line, else those of the configuration; UsageError for a name
        that is none. What only a comparison can tell is left out of the configuration's for a
        single run.
        """
        demands = [Demand(asked, "fail") for asked in fail_on]
        demands += [Demand(asked, "warn") for asked in warn_on]
        if not demands:
            demands = [
                demand
                for demand in _configured(settings)
                if compared or not demand.condition.compared
            ]
        gates.check(demands, compared=compared)
        return cls(demands, exit_zero, github)

    def judge(self, found: Report | Comparison) -> list[Gate]:
        """The gates with what was found."""
        return gates.judge(self.demands, found)

    def finish(
        self,
        found: Report | Comparison,
        judged: Sequence[Gate],
        painting: Painting,
        target: Target,
        terminal: Terminal,
    ) -> int:
        """Tells of the gates and returns the exit code; the document is written by now."""
        for row in judged:
            if not row.passed:
                terminal.say(f"gate {compare_words.gate(row)}")
        if self.github:
            _tell_github(found, judged, painting, target, terminal)
        failed = any(not row.passed and row.level == "fail" for row in judged)
        return GATE_FAILED if failed and not self.exit_zero else 0


def _configured(settings: Settings) -> list[Demand]:
    levels = (("fail", settings.fail_on), ("warn", settings.warn_on))
    return [
        Demand(gates.configured(text, level), level) for level, texts in levels for text in texts
    ]


def _tell_github(
    found: Report | Comparison,
    judged: Sequence[Gate],
    painting: Painting,
    target: Target,
    terminal: Terminal,
) -> None:
    for line in actions.commands(found, judged):
        # The runner reads both streams; stdout may hold a document.
        click.echo(line, err=True)
    pages = [str(path) for path, name in target.files.items() if name == "html"]
    written = {SUMMARY: painting.summary(), OUTPUTS: actions.outputs(found, "".join(pages[:1]))}
    for variable, text in written.items():
        path = os.environ.get(variable)
        if path:
            with Path(path).open("a", encoding="utf-8", errors="replace") as file:
                file.write(text)
    if not os.environ.get(SUMMARY):
        terminal.say(f"{SUMMARY} is not set, so no job summary was written")
