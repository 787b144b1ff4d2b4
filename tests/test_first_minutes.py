"""A new user's path, as README has it: record two ranks, analyse, open, paste. Needs torch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_LINES = 250

LOOP = """
import os
import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.randn(30 * 16, 64), batch_size=16)


def train_step(batch):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()


{}
dist.destroy_process_group()
# Gloo's threads now and then outlive the interpreter, which then aborts (torch 2.13 on a CPU).
os._exit(0)
"""


def recording() -> str:
    """The lines that README tells a user to put around the loop."""
    (block,) = re.findall(r"```python\n(from analyzer\.record.*?)```", README, re.DOTALL)
    return str(block)


def ceiling(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "analyzer", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which README's recording was done by two ranks."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("user")
    (folder / "train.py").write_text(LOOP.format(recording()))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    ran = subprocess.run(
        [*torchrun, "--standalone", "train.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.mark.torch
def test_readmes_lines_record_a_file_for_each_rank(recorded: Path) -> None:
    names = sorted(path.name for path in (recorded / "traces").iterdir())
    assert names == ["rank0-of-2.json.gz", "rank1-of-2.json.gz"]


@pytest.mark.torch
def test_what_was_recorded_is_analysed_from_its_folder_without_arguments(recorded: Path) -> None:
    out = ceiling(recorded / "traces", "analyze").stdout
    assert "2 ranks" in out
    assert "skipped" not in out


@pytest.mark.torch
def test_the_report_and_the_text_to_paste_are_written(recorded: Path) -> None:
    ceiling(recorded, "analyze", "traces", "-o", "report")
    names = sorted(path.name for path in (recorded / "report").iterdir())
    assert names == ["report.html", "report.json", "report.md"]
    assert ceiling(recorded, "analyze", "traces", "--format", "markdown").stdout.startswith("<!-- ")


@pytest.mark.torch
def test_inspect_finds_two_ranks_that_say_who_they_are(recorded: Path) -> None:
    out = ceiling(recorded, "inspect", "traces").stdout
    assert "ranks     2 present, world size 2" in out
    assert "profiler-slowdown" in out


def test_readme_can_be_read_in_one_sitting() -> None:
    assert len(README.splitlines()) <= MOST_LINES


def test_every_command_in_readme_exists() -> None:
    known = {"analyze", "inspect", "digest", "overlay", "crosscheck", "render", "laws", "explain"}
    known |= {"schema", "compare", "scaling"}
    assert set(re.findall(r"^ceiling (\w+)", README, re.MULTILINE)) <= known
