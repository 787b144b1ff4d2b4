"""What do all parts of a document have in common?"""

from __future__ import annotations

from typing import Annotated

import msgspec

# What a saved report may hold: anybody can have written it, and pictures are drawn of these.
_LARGEST = 1e15
Ms = Annotated[float, msgspec.Meta(ge=0, le=_LARGEST)]
Multiple = Annotated[float, msgspec.Meta(gt=0, le=_LARGEST)]
Part01 = Annotated[float, msgspec.Meta(ge=0, le=1)]
Gpus = Annotated[int, msgspec.Meta(ge=1, le=2**53)]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all parts: immutable, keyword-only, compared by value."""
