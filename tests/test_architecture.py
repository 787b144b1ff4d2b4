"""The house: files import from above only, say what they answer, and stay small."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "analyzer"
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES = 420
MOST_FUNCTION_LINES = 60


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def imported(path: Path) -> set[str]:
    """Modules of the package that a file imports, `from package import module` resolved."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in inside}
    return found & set(MODULES)


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            yield node


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_no_import_hides_in_a_function_or_behind_a_typing_guard(path: Path) -> None:
    hidden = [
        node.lineno
        for outer in ast.walk(ast.parse(path.read_text()))
        if isinstance(outer, ast.FunctionDef | ast.If | ast.ClassDef)
        and not (isinstance(outer, ast.If) and "version_info" in ast.unparse(outer.test))
        for node in ast.walk(outer)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert hidden == []


def test_imports_make_no_circle() -> None:
    graph = {name: imported(path) - {name} for name, path in MODULES.items()}
    done: set[str] = set()
    while ready := {name for name in graph if name not in done and graph[name] <= done}:
        done |= ready
    assert set(graph) - done == set()


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_file_says_what_it_answers(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_file_and_functions_are_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES
    long = {
        f.name: f.end_lineno - f.lineno + 1
        for f in functions(path)
        if f.end_lineno is not None and f.end_lineno - f.lineno + 1 > MOST_FUNCTION_LINES
    }
    assert long == {}
