"""What do all parts of a document have in common?"""

from __future__ import annotations

import msgspec


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all parts: immutable, keyword-only, compared by value."""
