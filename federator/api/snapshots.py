"""Snapshots that a principal names, and paging of listings of a snapshot or of the differences between two."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import Depends, Query
from sqlalchemy import ColumnElement, Connection

from federator.api.cursor_seal import CursorSeal
from federator.api.dependencies import CursorSealDep, IndexDep, VisibilityDep
from federator.api.paging import decode_cursor, encode_cursor, require_storable
from federator.connector import InvalidInput
from federator.store import Index
from federator.store.snapshots import (
    RunSnapshot,
    Snapshot,
    latest_run_snapshots,
    list_run_snapshots,
    resolve_snapshot,
    snapshot_at,
)
from federator.views.positions import parse_position
from federator.views.runs import visible_runs_condition
from federator.views.visibility import Visibility

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
    """Resolves the snapshots that a principal names. A run that the principal may not see is unknown."""

    index: Index
    visibility: Visibility
    seal: CursorSeal

    def resolve(self, text: str, parameter: str) -> Snapshot:
        """Return the snapshot of a run id or a time. Raise the errors of ``store.snapshots.resolve_snapshot``."""
        return self._limit(resolve_snapshot(self.index, require_storable(text, parameter), self._visible))

    def resolve_page(
        self, listing: str, texts: tuple[str | None, ...], cursor: str | None
    ) -> tuple[str | None, tuple[Snapshot, ...]]:
        """Return where a page begins, and the snapshots of its listing: one, or two that are compared, the earlier one first.

        A missing text means the present; as the first of two, the end of the last run but one. If both are missing, the second one is
        the end of the last run.
        The cursor pins the snapshots of the first page, because a relative time such as -2d differs from page to page.
        """
        packed, _ = decode_cursor(cursor, listing, scopes=self.visibility.scopes)
        if packed:
            after, pinned = parse_position(packed, str, list)
            after = require_storable(self.seal.open(after), "cursor")
            if len(pinned) != len(texts):
                raise InvalidInput("the cursor is malformed", hint="omit the cursor to start again")
            return after, tuple(
                self.resolve(at, "cursor") if isinstance(at, str) else self._limit(snapshot_at(self.index, at)) for at in pinned
            )
        if texts == (None, None):
            return None, self._latest()
        if len(texts) == 2 and texts[0] is None:
            return None, (self._latest()[0], self.resolve(texts[1] or "now", "to"))
        return None, tuple(self.resolve(text or "now", "as_of") for text in texts)

    def list_selectable(self, before: str | None, limit: int) -> list[RunSnapshot]:
        """List the snapshots that the principal can select, newest first. ``before`` is the last run id of the previous page."""
        return list_run_snapshots(self.index, self._visible, self._shows, before=before, limit=limit)

    def next_cursor(self, listing: str, after: str | None, snapshots: tuple[Snapshot, ...]) -> str | None:
        """Return the cursor of the page that begins after ``after``. None if there is none."""
        if after is None:
            return None
        pinned = [snapshot.run or snapshot.at for snapshot in snapshots]
        return encode_cursor(listing, json.dumps([self.seal.seal(after), pinned]), scopes=self.visibility.scopes)

    def _latest(self) -> tuple[Snapshot, Snapshot]:
        before, after = latest_run_snapshots(self.index, self._visible)
        return self._limit(before), self._limit(after)

    def _limit(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot of the sources in scope: the retention of others is not the principal's business."""
        return replace(snapshot, revisions={name: at for name, at in snapshot.revisions.items() if self._shows(name)})

    def _shows(self, source: str) -> bool:
        return self.visibility.scopes.is_visible((source,))

    def _visible(self, connection: Connection) -> ColumnElement[bool]:
        return visible_runs_condition(connection, self.visibility)


async def _get_resolver(index: IndexDep, visibility: VisibilityDep, seal: CursorSealDep) -> SnapshotResolver:
    return SnapshotResolver(index, visibility, seal)


SnapshotsDep = Annotated[SnapshotResolver, Depends(_get_resolver)]
