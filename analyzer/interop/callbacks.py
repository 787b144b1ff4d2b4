"""How does a trainer that owns the loop record? Callbacks for Lightning and Hugging Face Trainer.

Neither is imported: both call hooks by name, so that an object with all of them is a callback.
"""

from __future__ import annotations

import os
from typing import Any

from analyzer.interop.record import Recorder


class _Callback:
    """Starts and ends a Recorder; hooks that are not defined do nothing."""

    def __init__(self, folder: str | os.PathLike[str], **how: Any) -> None:
        self.recorder = Recorder(folder, **how)
        self._running = False

    def __getattr__(self, name: str) -> Any:
        # Only the names that trainers call: anything else must stay an error, copying included.
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(name)

    def _start(self) -> None:
        self.recorder.__enter__()
        self._running = True

    def _stop(self) -> None:
        if self._running:
            self._running = False
            self.recorder.__exit__(None, None, None)


def _nothing(*arguments: Any, **named: Any) -> None:
    """A hook that this callback does not need."""


class LightningRecorder(_Callback):
    """`Trainer(callbacks=[LightningRecorder("traces")])`; arguments as those of Recorder.

    A step is a batch.
    """

    @property
    def state_key(self) -> str:
        """The name of this callback's part of a checkpoint, which is empty."""
        return type(self).__qualname__

    def state_dict(self) -> dict[str, Any]:
        """Nothing is to be restored."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing is restored."""

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        """Nothing is set up before the training starts."""

    def teardown(self, trainer: Any, module: Any, stage: str) -> None:
        """Ends what an interrupted training left running."""
        self._stop()

    def on_train_start(self, trainer: Any, module: Any) -> None:
        """The loop begins."""
        self._start()

    def on_train_batch_end(self, trainer: Any, *rest: Any) -> None:
        """A step has ended."""
        self.recorder.step()

    def on_train_end(self, trainer: Any, module: Any) -> None:
        """The loop has ended."""
        self._stop()


class TrainerRecorder(_Callback):
    """`Trainer(..., callbacks=[TrainerRecorder("traces")])` of Hugging Face transformers; arguments
    as those of Recorder. A step is an optimizer step, with all its accumulated batches.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """The loop begins."""
        self._start()

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """A step has ended."""
        self.recorder.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """The loop has ended."""
        self._stop()
