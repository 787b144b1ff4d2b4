"""What users import to record: `from analyzer.record import Recorder`. Needs PyTorch."""

from __future__ import annotations

from analyzer.interop.callbacks import LightningRecorder, TrainerRecorder
from analyzer.interop.record import Recorder

__all__ = ["LightningRecorder", "Recorder", "TrainerRecorder"]
