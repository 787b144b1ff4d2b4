"""A tiny training loop under the recorder, as a script for torchrun: loops.py FOLDER."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

from analyzer.record import Recorder


def main(folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    network = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
    model = nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dimensions = {"dp": dist.get_rank()}
    with Recorder(folder, skip=1, timed=4, warmup=1, active=6, dimensions=dimensions) as recorder:
        for _ in range(14):
            optimizer.zero_grad()
            model(torch.randn(64, 64)).sum().backward()
            optimizer.step()
            recorder.step()
    dist.destroy_process_group()
    # Gloo's threads now and then outlive the interpreter, which then aborts (torch 2.13 on a CPU).
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
