"""Which annotations are iterations of a serving engine, and do they prefill or decode?

One iteration is one forward pass of a batch: what a step is in training. vLLM and SGLang say in the
annotation how many requests of the batch read their prompt (prefill) and how many write (decode).
"""

from __future__ import annotations

import re

PREFILL, DECODE, MIXED, IDLE = "prefill", "decode", "prefill-decode", "idle"

# SGLang: step[EXTEND bs=15 toks=15360], by the engine's forward mode.
_SGLANG = re.compile(r"step\[(?P<mode>[A-Z_]+)(?: |\])")
_MODES = {
    "EXTEND": PREFILL,
    "DRAFT_EXTEND": PREFILL,
    "DECODE": DECODE,
    # Speculative decoding: what a draft proposed is checked.
    "TARGET_VERIFY": DECODE,
    "MIXED": MIXED,
    "IDLE": IDLE,
}
# vLLM: execute_context_1(888_788544)_generation_0(0), execute_8192_context_9(..)_generation_37(..).
_VLLM = re.compile(r"execute_(?:\d+_)?context_(?P<context>\d+)\(.*\)_generation_(?P<writing>\d+)\(")


def phases(names: list[str]) -> dict[int, str]:
    """The phase of each name (by its place) that marks an iteration.

    Where both spellings occur they are of the same iterations, so that SGLang's alone count.
    """
    of_sglang = {i: phase for i, name in enumerate(names) if (phase := _sglang(name))}
    return of_sglang or {i: phase for i, name in enumerate(names) if (phase := _vllm(name))}


def _sglang(name: str) -> str:
    found = _SGLANG.match(name)
    return _MODES.get(found["mode"], found["mode"].lower()) if found else ""


def _vllm(name: str) -> str:
    found = _VLLM.match(name)
    if not found:
        return ""
    reading, writing = int(found["context"]) > 0, int(found["writing"]) > 0
    if reading and writing:
        return MIXED
    return PREFILL if reading else DECODE if writing else IDLE
