"""Locations of new tables: the default ones, and the check of what was declared."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from federator.connector import ConcurrentModification
from federator.model import TableRecord


def join_levels(root: str, levels: Iterable[str]) -> str:
    """Return the URI of a path below a root. A file's URI is percent-encoded; in an object store, "%20" is part of a key."""
    return "/".join([root, *(map(quote, levels) if root.startswith("file:") else levels)])


def require_location(created: TableRecord, requested: TableRecord) -> TableRecord:
    """Return the table that was read after a declaration. Raise ConcurrentModification if it has another location than requested.

    Its writer would otherwise write into the location of another table. Nothing is removed: it may be another client's declaration.
    """
    if created.canonical != requested.canonical:
        raise ConcurrentModification(
            f"{created.source}: {created.key} is declared at {created.location} now, not at {requested.location}",
            hint="check who declared it; nothing was removed",
        )
    return created
