"""Default locations of tables."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote


def join_levels(root: str, levels: Iterable[str]) -> str:
    """Return the URI of a path below a root. A file's URI is percent-encoded; in an object store, "%20" is part of a key."""
    return "/".join([root, *(map(quote, levels) if root.startswith("file:") else levels)])
