"""A Report -> tables that people take home: pandas DataFrames, or CSV files that a sheet may open.

Columns and units are those of tables.py; what is not measurable is missing, never 0.
"""

from __future__ import annotations

import csv
import importlib
import io
from pathlib import Path
from typing import Any

from analyzer.interop.tables import TABLES, Cell
from analyzer.render.files import check, encoded, write
from analyzer.render.format import clean
from analyzer.report.document import Report

# A sheet runs a cell that begins so as a formula (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@")


def frames(report: Report) -> dict[str, Any]:
    """A DataFrame for each of TABLES; `attrs["columns"]` says what each column holds."""
    # Nobody who only wants a page should wait for pandas to load.
    pandas = importlib.import_module("pandas")
    made = {}
    for name, kind in TABLES.items():
        rows = list(kind.rows(report))
        frame = pandas.DataFrame(
            {
                c.name: pandas.Series([row[c.name] for row in rows], dtype=c.dtype)
                for c in kind.columns
            }
        )
        frame.attrs["columns"] = {c.name: c.says for c in kind.columns}
        made[name] = frame
    return made


def write_csv(report: Report, folder: Path, *, force: bool = False) -> list[Path]:
    """Writes each table as UTF-8 `name`.csv and returns the files; a missing value is empty.

    Text that a sheet would run as a formula gets an apostrophe before it.
    """
    paths = {folder / f"{name}.csv": kind for name, kind in TABLES.items()}
    check(list(paths), force=force)
    written = {}
    for path, kind in paths.items():
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(c.name for c in kind.columns)
        for row in kind.rows(report):
            lines.writerow(_safe(row[c.name]) for c in kind.columns)
        written[path] = encoded(text.getvalue())
    write(written)
    return list(paths)


def _safe(cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    # One line: a carriage return would end the row for most readers.
    line = clean(cell)
    return f"'{line}" if line.lstrip().startswith(_FORMULA) else line
