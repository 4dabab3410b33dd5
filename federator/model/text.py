"""Text that an index can store. PostgreSQL refuses NUL characters, and no database or Parquet file stores a lone surrogate."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Return whether a text contains neither a NUL character nor a lone surrogate."""
    # Most text is ASCII, for which the expression takes many times longer than this search.
    return "\0" not in text if text.isascii() else _UNSTORABLE.search(text) is None


def escape_unstorable(text: str) -> str:
    r"""Return a text that can be stored and printed: each character that cannot be stored as its escape, such as ``\u0000``."""
    return _UNSTORABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
