"""Writes docs/report.ipynb: a report and its tables on a sample, executed.

`python docs/make_notebook.py` (needs the extra `dev`).
"""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).with_name("report.ipynb")
LONGEST = 2_000
CELLS = (
    "# A report in a notebook\n\nThe sample is a run on 4 GPUs with one slow rank. "
    "`api.analyze` takes what `ceiling analyze` takes.",
    "from analyzer import api\n\n"
    'request = api.Request(label="slow rank", created="2026-01-01T00:00:00Z")\n'
    'report = api.analyze(["../sample_traces/slow-rank-4gpu"], request, api.Settings())\n'
    "report",
    "`api.frames` gives every table of the report as a DataFrame; `attrs` says what the columns "
    "hold and in which units.",
    'frames = api.frames(report)\nframes["classes"].attrs["columns"]',
    "Where does the time of each rank go, in ms per step?",
    'classes = frames["classes"]\n'
    'by_rank = classes[classes["of"] == "rank"]\n'
    'by_rank.pivot(index="rank", columns="class", values="ms").round(2).loc[:, lambda t: t.any()]',
    "What is each fix worth?",
    'frames["edits"][["id", "step_ms", "speedup", "noise"]].round(2)',
    "Who keeps whom waiting?",
    'frames["ranks"][["rank", "step_ms", "costs_others_ms", "late"]].round(2)',
)


def notebook() -> nbformat.NotebookNode:
    """The notebook, words and code in turn, not executed; the same each time."""
    made = nbformat.v4.new_notebook()
    for place, text in enumerate(CELLS):
        new = nbformat.v4.new_code_cell if place % 2 else nbformat.v4.new_markdown_cell
        made.cells.append(new(text, id=f"cell-{place}"))
    return made


def executed(made: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with its outputs, run in docs/; without what differs from run to run."""
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
    NotebookClient(made, timeout=120, kernel_name="python3", resources=resources).execute()
    for cell in made.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            # The plain text of a report is all of it, and nobody sees it.
            if (
                len(output.get("data", {}).get("text/plain", "")) > LONGEST
                and "text/html" in output.data
            ):
                del output.data["text/plain"]
    made.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python",
                                    "name": "python3"}}  # fmt: skip
    return made


if __name__ == "__main__":
    text = json.dumps(executed(notebook()), indent=1, sort_keys=True, ensure_ascii=False)
    NOTEBOOK.write_text(text + "\n", encoding="utf-8")
