"""Records a small DDP run on two processes over gloo whose batches take long to prepare.

`python record_loader.py OUT_DIR WORKERS`: without workers every step waits for its batch, with some
the batches are made beside the step. Needs torch.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

RANKS, ACTIVE, IDLE, BATCH = 2, 10, 3, 16


class Slow(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Samples that take 2 ms each, as if they were read from a far disk."""

    def __len__(self) -> int:
        return BATCH * (ACTIVE + IDLE)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(0.002)
        return torch.full((256,), float(index % 7)), torch.tensor(index % 10)


def train(rank: int, port: int, folder: str, workers: int) -> None:
    """One rank: its steps under the profiler, its trace written at the end."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    network = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Slow(), batch_size=BATCH, num_workers=workers)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=ACTIVE, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(f"{folder}/rank{rank}.json.gz"),
    ) as profiler:
        for samples, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(samples), labels).backward()
            time.sleep(0.02)
            optimizer.step()
            profiler.step()
    dist.destroy_process_group()


def main(folder: str, workers: int) -> None:
    """Both ranks into the folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(train, args=(port, folder, workers), nprocs=RANKS)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
