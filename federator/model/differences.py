"""Kinds of differences between two snapshots."""

from __future__ import annotations

from enum import StrEnum


class DifferenceKind(StrEnum):
    """What became of an object, from the first snapshot to the second."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"

    @property
    def reverse(self) -> DifferenceKind:
        """The kind of the same difference if the snapshots are exchanged."""
        return {DifferenceKind.ADDED: DifferenceKind.REMOVED, DifferenceKind.REMOVED: DifferenceKind.ADDED}.get(self, self)
