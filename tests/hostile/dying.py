"""Stand-ins for what runs in a worker, importable there: killed by the system, or never done."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from analyzer.config import Settings
from analyzer.fleet import Outcome
from analyzer.fleet import outcome as real


def killed_once(path: Path, settings: Settings) -> Outcome:
    """The first process that reads rank1.json is killed as the system does for lack of memory."""
    mark = path.with_suffix(".killed")
    if path.name == "rank1.json" and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return real(path, settings)


def killed_always(path: Path, settings: Settings) -> Outcome:
    """Every process that reads rank1.json is killed."""
    if path.name == "rank1.json":
        os.kill(os.getpid(), signal.SIGKILL)
    return real(path, settings)


def never_done(path: Path, settings: Settings) -> Outcome:
    """Says in the file `path`.pid that it began, and goes on for a minute."""
    path.with_suffix(".tmp").write_text(str(os.getpid()))
    path.with_suffix(".tmp").rename(path.with_suffix(".pid"))
    time.sleep(60)
    return real(path, settings)
