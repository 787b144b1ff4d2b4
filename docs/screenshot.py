"""Takes README's picture: the first screen of the report on a sample, by a headless Chromium.

`python docs/screenshot.py` writes sample_traces/report.png.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from analyzer.cli import run

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "sample_traces" / "report.png"
SAMPLE = ROOT / "sample_traces" / "slow-rank-4gpu"
SIZE = "1120,960"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def main() -> int:
    """Exit code: 1 without a browser or a report."""
    browser = next((path for path in map(shutil.which, NAMES) if path), None)
    if browser is None:
        print(f"none of {', '.join(NAMES)} is installed", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        # The same picture each time: the page shows when it was made.
        os.environ["SOURCE_DATE_EPOCH"] = "1760000000"
        if run(["-q", "analyze", str(SAMPLE), "-o", str(page), "--duration", "30d"]):
            return 1
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
        command = [browser, *flags, f"--user-data-dir={folder}/profile", f"--window-size={SIZE}"]
        subprocess.run(
            [*command, f"--screenshot={PICTURE}", page.as_uri()], check=True, capture_output=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
