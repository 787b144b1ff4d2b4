"""A headless Chromium for tests: what becomes of a page once it is laid out and its scripts ran."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next((path for path in map(shutil.which, NAMES) if path), None)


def opened(folder: Path, page: str, *flags: str) -> str:
    """What the browser prints on opening the page."""
    path = folder / "page-in-browser.html"
    path.write_text(page, encoding="utf-8")
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [*command, profile, "--window-size=1366,768", *flags, path.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def dom(folder: Path, page: str) -> str:
    """The document as it stands after its scripts ran."""
    return opened(folder, page, "--dump-dom")
