"""The objects of one source that differ between two of its revisions, as SQL.

Only rows that were opened or closed in between are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, func, literal, null, or_, select, tuple_, union_all

from federator.model.differences import DifferenceKind
from federator.store import tables as t
from federator.store.sql import chunked

r = t.record.c

#: path key and ``is_table`` of a row
ObjectKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class RevisionRange:
    """One source between two of its revisions, ``low`` and ``high``. ``is_reversed``: the comparison begins at ``high``.

    An object has an event in each revision after ``low``, up to ``high``, that opened or closed one of its rows.
    """

    source: str
    low: int
    high: int
    is_reversed: bool

    def select_differing(
        self, conditions: Sequence[ColumnElement[bool]], *, kind: DifferenceKind | None = None, after: ObjectKey | None = None
    ) -> Select[Any]:
        """Return a select of the objects that differ, by path, with the ids of their rows at ``low`` and ``high`` (``old_id``,
        ``new_id``; null: absent) and the revisions of their ``first`` and ``last`` event.

        ``conditions`` are those of the records. ``kind`` is that of the comparison, also if it is reversed.
        """
        if after is not None:
            conditions = [*conditions, tuple_(r.path, r.is_table) > tuple_(literal(after[0]), literal(after[1]))]
        event = self._select_events(*conditions)
        old_id, new_id = func.max(event.old_id), func.max(event.new_id)
        is_kind: dict[DifferenceKind, ColumnElement[bool]] = {
            DifferenceKind.ADDED: old_id.is_(None) & new_id.is_not(None),
            DifferenceKind.REMOVED: old_id.is_not(None) & new_id.is_(None),
            DifferenceKind.CHANGED: func.max(event.old_digest) != func.max(event.new_digest),
        }
        if kind is not None and self.is_reversed:
            kind = kind.reverse
        differs = or_(*is_kind.values()) if kind is None else is_kind[kind]
        revisions = (func.min(event.revision).label("first"), func.max(event.revision).label("last"))
        query = select(event.path, event.is_table, old_id.label("old_id"), new_id.label("new_id"), *revisions)
        return query.group_by(event.path, event.is_table).having(differs).order_by(event.path, event.is_table)

    def count_differing(self, connection: Connection, conditions: Sequence[ColumnElement[bool]]) -> dict[DifferenceKind, int]:
        """Return the number of objects that differ by kind. Kinds without any are left out."""
        differing = self.select_differing(conditions).order_by(None).subquery().c
        kind = case(
            (differing.old_id.is_(None), DifferenceKind.ADDED),
            (differing.new_id.is_(None), DifferenceKind.REMOVED),
            else_=DifferenceKind.CHANGED,
        )
        numbers = connection.execute(select(kind, func.count()).group_by(kind)).all()
        return {DifferenceKind(name).reverse if self.is_reversed else DifferenceKind(name): number for name, number in numbers}

    def find_previous_events(
        self, connection: Connection, paths: Sequence[str], last: Mapping[ObjectKey, int]
    ) -> dict[ObjectKey, int]:
        """Return the revision of the event before the ``last`` one, for objects with several events."""
        previous: dict[ObjectKey, int] = {}
        for chunk in chunked(paths):
            event = self._select_events(r.path.in_(chunk))
            for path, is_table, revision in connection.execute(select(event.path, event.is_table, event.revision)):
                key = (path, is_table)
                if key in last and previous.get(key, 0) < revision < last[key]:
                    previous[key] = revision
        return previous

    def _select_events(self, *conditions: ColumnElement[bool]) -> Any:
        """Return the columns of a select of all events.

        ``old_id`` and ``old_digest`` are set if the event closed the row that was valid at ``low``, ``new_id`` and ``new_digest`` if it
        opened the one that is valid at ``high``.
        """
        is_valid_at_low = r.valid_from <= self.low
        is_valid_at_high = or_(r.valid_to.is_(None), r.valid_to > self.high)
        closed = select(
            r.path, r.is_table, case((is_valid_at_low, r.id)).label("old_id"), null().label("new_id"),
            case((is_valid_at_low, r.digest)).label("old_digest"), null().label("new_digest"), r.valid_to.label("revision"),
        ).where(r.source == self.source, *conditions, r.valid_to > self.low, r.valid_to <= self.high)  # fmt: skip
        opened = select(
            r.path, r.is_table, null(), case((is_valid_at_high, r.id)), null(), case((is_valid_at_high, r.digest)), r.valid_from,
        ).where(r.source == self.source, *conditions, r.valid_from > self.low, r.valid_from <= self.high)  # fmt: skip
        return union_all(closed, opened).subquery().c
