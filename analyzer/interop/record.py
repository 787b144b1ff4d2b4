"""How are traces recorded that this tool can say most about? torch.profiler, set up for that.

A run is skipped until it is warm, timed without the profiler, and only then recorded. Steps are the
time between calls of `step`; the timed length goes into the trace, in ns, so that the report can
say how much the profiler slowed the run.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analyzer.interop.naming import Place, file_name, place

try:
    import torch
except ImportError as error:
    raise ImportError(
        "analyzer.record needs PyTorch: pip install 'torch-ceiling[record]'"
    ) from error

# The key of the trace's header that analyzer.trace.header reads.
METADATA = "ceiling"


class Recorder:
    """Records some steps of a training loop into one file per rank, `folder`/rankN-of-M.json.gz.

        with Recorder("traces") as recorder:
            for batch in loader:
                train_step(batch)
                recorder.step()

    `skip` steps pass first (compilation, caches), `timed` ones are timed without the profiler,
    `warmup` ones run under it and are thrown away, `active` ones are recorded; then it is off.
    `dimensions` are this rank's numbers in its parallel dimensions (tp=1, pp=0), for the file's
    name. A file of the same name is replaced.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        skip: int = 5,
        timed: int = 10,
        warmup: int = 3,
        active: int = 8,
        dimensions: Mapping[str, int] | None = None,
    ) -> None:
        if skip < 0 or timed < 0 or warmup < 0 or active < 1:
            raise ValueError("skip, timed and warmup are 0 or more steps, active at least one")
        self._folder = Path(folder)
        self._skip, self._timed, self._before = skip, timed, skip + timed + warmup
        self._steps = self._before + active
        self._dimensions = dict(dimensions or {})
        self._done = 0
        self._since = 0
        self._step_ns: int | None = None
        self._path: Path | None = None
        self._profiler = torch.profiler.profile(
            activities=_activities(),
            schedule=torch.profiler.schedule(
                skip_first=skip, wait=timed, warmup=warmup, active=active, repeat=1
            ),
            on_trace_ready=self._write,
            # They lengthen host times, which are what the report has to tell from idle time.
            record_shapes=False,
            profile_memory=False,
            with_stack=False,
            experimental_config=_sync_events(),
        )

    @property
    def path(self) -> Path | None:
        """The file written; None until it is."""
        return self._path

    def __enter__(self) -> Recorder:
        self._profiler.__enter__()
        self._mark()
        return self

    def __exit__(self, *error: Any) -> None:
        self._profiler.__exit__(*error)
        if self._path is None and error[:1] in ((), (None,)):
            warnings.warn(
                f"nothing was recorded: the loop ended after {self._done} steps, recording begins "
                f"after {self._before}. Lower skip, timed or warmup.",
                stacklevel=2,
            )

    def step(self) -> None:
        """Ends a step: to be called once at the end of each."""
        self._done += 1
        self._mark()
        self._profiler.step()
        # Only what is said while it records gets into the trace.
        if self._done == self._before and self._step_ns is not None:
            said = {"unprofiled_step_ns": self._step_ns, "unprofiled_steps": self._timed}
            self._profiler.add_metadata_json(METADATA, json.dumps(said))

    def _mark(self) -> None:
        """Takes the time at both ends of the timed steps. Waits for the device there, and nowhere
        else: the steps themselves stay as they are.
        """
        if self._timed and self._done == self._skip:
            _finish()
            self._since = time.perf_counter_ns()
        if self._timed and self._done == self._skip + self._timed:
            _finish()
            self._step_ns = (time.perf_counter_ns() - self._since) // self._timed

    def _write(self, profiler: Any) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / file_name(_place(), self._dimensions)
        # Under another name until it is whole, so that nobody reads half of it.
        unfinished = path.with_name(f".{path.name}")
        profiler.export_chrome_trace(str(unfinished))
        os.replace(unfinished, path)
        self._path = path


def _place() -> Place:
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return Place(distributed.get_rank(), distributed.get_world_size())
    return place(os.environ)


def _activities() -> list[Any]:
    """The host, and the devices that are here."""
    kinds = torch.profiler.ProfilerActivity
    found = [kinds.CPU]
    if torch.cuda.is_available():
        found.append(kinds.CUDA)
    if hasattr(kinds, "XPU") and hasattr(torch, "xpu") and torch.xpu.is_available():
        found.append(kinds.XPU)
    return found


def _finish() -> None:
    """Waits until the device has done all its work."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    elif hasattr(torch, "xpu") and torch.xpu.is_available():
        torch.xpu.synchronize()


def _sync_events() -> Any:
    """The configuration with synchronisation events on; None where this PyTorch has none."""
    try:
        return torch.profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    except (AttributeError, TypeError):
        return None
