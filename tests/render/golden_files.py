"""Texts kept beside the tests. CEILING_UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).parent / "golden"


def check(name: str, text: str) -> None:
    """Fails unless `text` is the golden file `name`."""
    path = HERE / name
    if os.environ.get("CEILING_UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
