"""Snapshots that a caller names, and paging of listings of a snapshot or of the differences between two."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query
from sqlalchemy import ColumnElement, Connection

from federator.api.cursor_seal import CursorSeal
from federator.api.dependencies import CursorSealDep, IndexDep, VisibilityDep
from federator.api.paging import decode_cursor, encode_cursor, require_storable
from federator.connector import InvalidInput
from federator.store import Index
from federator.store.snapshots import Snapshot, latest_run_snapshots, resolve_snapshot, snapshot_at
from federator.views.positions import parse_position
from federator.views.runs import Visibility, visible_runs_condition

AsOf = Annotated[
    str | None,
    Query(
        max_length=64,
        description="a run id (the state at the end of the run) or a time: `2026-11-20`, `2026-11-20T08:30:00Z`, `-2d`; "
        "values without history (freshness, mirrors, versions and row counts of tables) are omitted",
    ),
]


@dataclass(frozen=True, slots=True)
class SnapshotResolver:
    """Resolves the snapshots that a caller names. A run that the caller may not see is unknown."""

    index: Index
    visibility: Visibility
    seal: CursorSeal

    def resolve(self, text: str, parameter: str) -> Snapshot:
        """Return the snapshot of a run id or a time. Raise the errors of ``store.snapshots.resolve_snapshot``."""
        return resolve_snapshot(self.index, require_storable(text, parameter), self._visible)

    def resolve_page(
        self, listing: str, texts: tuple[str | None, ...], cursor: str | None
    ) -> tuple[str | None, tuple[Snapshot, ...]]:
        """Return where a page begins, and the snapshots of its listing.

        The cursor pins the snapshots of the first page, because a relative time such as -2d differs from page to page.
        """
        packed, _ = decode_cursor(cursor, listing, scopes=self.visibility.scopes)
        if packed:
            after, pinned = parse_position(packed, str, list)
            after = require_storable(self.seal.open(after), "cursor")
            if len(pinned) != len(texts):
                raise InvalidInput("the cursor is malformed", hint="omit the cursor to start again")
            return after, tuple(
                self.resolve(at, "cursor") if isinstance(at, str) else snapshot_at(self.index, at) for at in pinned
            )
        if texts == (None, None):
            return None, latest_run_snapshots(self.index, self._visible)
        if len(texts) == 2 and texts[0] is None:
            return None, (latest_run_snapshots(self.index, self._visible)[0], self.resolve(texts[1] or "now", "to"))
        return None, tuple(self.resolve(text or "now", "as_of") for text in texts)

    def next_cursor(self, listing: str, after: str | None, snapshots: tuple[Snapshot, ...]) -> str | None:
        """Return the cursor of the page that begins after ``after``. None if there is none."""
        if after is None:
            return None
        pinned = [snapshot.run or snapshot.at for snapshot in snapshots]
        return encode_cursor(listing, json.dumps([self.seal.seal(after), pinned]), scopes=self.visibility.scopes)

    def _visible(self, connection: Connection) -> ColumnElement[bool]:
        return visible_runs_condition(connection, self.visibility)


async def _get_resolver(index: IndexDep, visibility: VisibilityDep, seal: CursorSealDep) -> SnapshotResolver:
    return SnapshotResolver(index, visibility, seal)


SnapshotsDep = Annotated[SnapshotResolver, Depends(_get_resolver)]
