"""Where traces of other people's jobs lie, for the tests that read them.

They are not part of the project. `CEILING_REAL_TRACES` names their folder; without it a folder
`shared/traces` beside the checkout is looked for. A test that needs one skips where it is absent.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE_CHECKOUT = Path(__file__).resolve().parents[2].joinpath("shared", "traces")
FOLDER = Path(os.environ.get("CEILING_REAL_TRACES", _BESIDE_CHECKOUT))


def real_trace(relative: str) -> Path:
    """The file or folder of that name below the trace folder; skips the calling test if absent."""
    path = FOLDER / relative
    if not path.exists():
        pytest.skip(f"no {relative} in {FOLDER} (set CEILING_REAL_TRACES)")
    return path
