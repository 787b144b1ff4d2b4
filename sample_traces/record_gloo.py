"""Records the sample recorded-gloo-2rank: a real DDP run on CPU, two processes, gloo, a DataLoader.

`python sample_traces/record_gloo.py OUT_DIR [RANKS]` (needs torch). Unlike the simulated samples it
differs on every run; paths and host names of the recording machine are taken out before writing.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

RANKS = 2
STEPS = 6  # one idle, one warm-up, four recorded
BATCH = 64


class Images(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Random images, each with some work to prepare it."""

    def __len__(self) -> int:
        return BATCH * STEPS

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(index)
        image = torch.rand(3, 32, 32, generator=generator)
        for _ in range(200):
            image = image.sort(dim=-1).values.flip(-1)
        return image, torch.tensor(index % 10)


def network() -> nn.Module:
    """A small convolutional classifier."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(4),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 8 * 8, 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    )


def write_clean(prof: profile, path: Path) -> None:
    """Export the trace to `path` (.json.gz) with its own name for its file and no foreign paths."""
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "trace.json"
        prof.export_chrome_trace(str(raw))
        text = raw.read_text(encoding="utf-8")
    text = re.sub(r'"traceName": "[^"]*"', f'"traceName": {json.dumps(path.name)}', text)
    text = re.sub(r'"host_name": "[^"]*"', '"host_name": "node0"', text)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def train(rank: int, ranks: int, port: int, folder: str) -> None:
    """One rank: six steps under the profiler, its trace written when the four recorded are done."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader(Images(), batch_size=BATCH, num_workers=1)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=4, repeat=1),
        on_trace_ready=lambda prof: write_clean(prof, Path(folder) / f"rank{rank}.json.gz"),
    ) as prof:
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            prof.step()
    dist.destroy_process_group()


def main(arguments: list[str]) -> int:
    """Record all ranks into the folder given."""
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    Path(arguments[0]).mkdir(parents=True, exist_ok=True)
    ranks = int(arguments[1]) if len(arguments) == 2 else RANKS
    mp.spawn(train, args=(ranks, 29_511, arguments[0]), nprocs=ranks)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
