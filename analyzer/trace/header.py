"""What does a trace file say about itself, in the keys beside its events?

Everything in it is optional and of any type; base_ns is nanoseconds since the epoch.
"""

from __future__ import annotations

from typing import Any

import msgspec

from analyzer.trace import repair
from analyzer.trace.blocks import Remainder
from analyzer.trace.dialect import FLAG_KEYS
from analyzer.trace.schema import text_or_none
from analyzer.trace.times import LARGEST_NS


def keys(rest: Remainder) -> dict[str, Any]:
    """The keys beside traceEvents, wherever they stand; {} for a list.

    Where what follows the events cannot be read it was cut off: the file counts as truncated, and
    what precedes them is taken alone. Where that is no JSON either it counts as malformed.
    """
    if not rest.header.endswith(b"["):
        return {}
    for tail in (rest.trailer, b"}"):
        found = _decoded(rest.header + b"]" + tail, rest)
        if found is not None:
            rest.truncated |= tail is not rest.trailer
            return found
    rest.malformed += 1
    return {}


def _decoded(text: bytes, rest: Remainder) -> dict[str, Any] | None:
    """The object that the text is, mended where that is needed and possible."""
    try:
        return _object(msgspec.json.decode(text))
    except (msgspec.MsgspecError, RecursionError):
        mended = repair.mend(text, event=False)
    if mended is None or text[mended.end :].strip():
        return None
    try:
        found = _object(msgspec.json.decode(mended.text))
    except (msgspec.MsgspecError, RecursionError):
        return None
    rest.repairs.update(mended.kinds)
    return found


def described(header: dict[str, Any]) -> dict[str, Any]:
    """The fields of TraceMeta that the header decides."""
    info = _object(header.get("distributedInfo"))
    return {
        "rank": _integer(info.get("rank")),
        "world_size": _integer(info.get("world_size")),
        "backend": text_or_none(info.get("backend")),
        "host": text_or_none(header.get("host_name")),
        "gpus": tuple(
            str(device["name"])
            for device in _objects(header.get("deviceProperties"))
            if device.get("name")
        ),
        "torch": text_or_none(header.get("torch_version") or header.get("pytorch_version")),
        "base_ns": _base_ns(header.get("baseTimeNanoseconds")),
        "groups": tuple(
            (str(g.get("pg_name")), str(g.get("pg_desc", "")), _integer(g.get("pg_size")) or 0)
            for g in _objects(info.get("pg_config"))
        ),
        "flags": {key: bool(header[key]) for key in FLAG_KEYS if key in header},
        "unprofiled_step_ns": _length(_object(header.get("ceiling")).get("unprofiled_step_ns")),
    }


def _base_ns(value: Any) -> int | None:
    """The base, quoted or not; None for what is no time that can be added."""
    base = _integer(value)
    return None if base is None or abs(base) > LARGEST_NS else base


def _length(value: Any) -> int | None:
    """A length of time; None for what is none that can be used."""
    length = _integer(value)
    return length if length is not None and 0 < length <= LARGEST_NS else None


def _integer(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []
