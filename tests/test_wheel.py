"""The wheel holds everything a report needs; an editable install finds the templates elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the package as a user gets it from the wheel."""
    place = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    built = [*pip, "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "-w", str(place)]
    subprocess.run(built, check=True)
    (wheel,) = place.glob("torch_ceiling-*.whl")
    target = place / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), str(wheel)], check=True)
    return target


@pytest.mark.wheel
def test_report_is_painted_from_the_wheel_alone(installed: Path, tmp_path: Path) -> None:
    sample = ROOT / "sample_traces" / "loader-bound-4gpu"
    script = (
        "import sys, analyzer.cli as cli\n"
        f"assert cli.__file__.startswith({str(installed)!r}), cli.__file__\n"
        f"sys.exit(cli.run(['-q', 'analyze', {str(sample)!r}, '-o', 'out']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "<svg" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.wheel
def test_wheel_is_typed_and_brings_its_licence(installed: Path) -> None:
    assert (installed / "analyzer" / "py.typed").exists()
    assert list(installed.glob("torch_ceiling-*.dist-info/licenses/LICENSE"))
