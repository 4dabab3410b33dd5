"""Change feed of a metastore, from its notification log (``DbNotificationListener``).

The log is evidence of change, not of state: its events only name the objects to read again. A feed cursor stores digests of the
last events that were read. A full crawl is needed if the log no longer shows the last of these events unchanged. This happens when
the log has expired, when another or a restored metastore answers, and when the ids went backwards.

The server does not assign ids in the order in which transactions end, and Derby assigns some ids twice. Each reading therefore
starts ``OVERLAP`` ids before its cursor and skips the events that the cursor knows. A catalog's description and location have no
events.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from federator.connector import CatalogChanges, Unsupported
from federator.model import Path
from federator_connectors._hive.metastore import DEFAULT_CATALOG, DEFAULT_DATABASE, Metastore

#: number of ids before the cursor that are read again: more than the number of concurrent transactions
OVERLAP = 200
#: above this number of events, a full crawl is cheaper than reading each object again
MAX_EVENTS = 50_000
_BATCH = 2_000
_LISTENER = "DbNotificationListener"
# Events that do not change a namespace record or a table record. Any other type that names an object counts as a change of it.
_IRRELEVANT = frozenset({
    "ADD_PARTITION", "ALTER_PARTITION", "ALTER_PARTITIONS", "DROP_PARTITION", "INSERT", "CREATE_FUNCTION", "DROP_FUNCTION",
    "CREATE_INDEX", "DROP_INDEX", "ALTER_INDEX", "OPEN_TXN", "COMMIT_TXN", "ABORT_TXN", "ALLOC_WRITE_ID", "ACID_WRITE",
    "BATCH_ACID_WRITE", "COMMIT_COMPACTION", "RELOAD", "ADD_PRIMARYKEY", "ADD_FOREIGNKEY", "ADD_UNIQUECONSTRAINT",
    "ADD_NOTNULLCONSTRAINT", "ADD_DEFAULTCONSTRAINT", "ADD_CHECKCONSTRAINT", "DROP_CONSTRAINT", "UPDATE_TABLE_COLUMN_STAT",
    "DELETE_TABLE_COLUMN_STAT", "UPDATE_PARTITION_COLUMN_STAT", "DELETE_PARTITION_COLUMN_STAT",
    "UPDATE_PARTITION_COLUMN_STAT_BATCH",
})  # fmt: skip


class _FeedUnusable(Exception):
    """The log cannot tell what has changed. ``went_back``: its past events are not those that the cursor knows."""

    def __init__(self, text: str, *, went_back: bool = False) -> None:
        super().__init__(text)
        self.went_back = went_back


@dataclass(frozen=True, slots=True)
class _FeedCursor:
    """A position in the log: the metastore's id, an event id, and digests of the last events.

    ``event_digests`` covers the last ``OVERLAP`` ids up to ``event``.
    """

    server: str
    event: int
    event_digests: frozenset[str]

    def to_text(self) -> str:
        fields = {"server": self.server, "event": self.event, "seen": sorted(self.event_digests)}
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> _FeedCursor:
        try:
            values = json.loads(text)
            return cls(str(values["server"]), int(values["event"]), frozenset(values["seen"]))
        except (ValueError, KeyError, TypeError):
            raise _FeedUnusable("the cursor was not created by this connector") from None


class ChangeFeed:
    """Reader of one metastore's log. The methods raise CatalogError, and Unsupported if the server has no log."""

    def __init__(self, source: str, store: Metastore) -> None:
        self._source = source
        self._store = store

    def current_cursor(self) -> str:
        """Return the feed cursor of the log's end."""
        self._require_log()
        current = self._store.get_current_event_id()
        return self._cursor_at(current, self._read(current - OVERLAP)).to_text()

    def changes_since(self, text: str) -> CatalogChanges:
        """Return the objects to read again, or the reason why a full crawl is needed."""
        self._require_log()
        try:
            cursor = _FeedCursor.parse(text)
            events = self._check_continuity(cursor)
            namespaces, tables = self._affected_objects(
                event for event in events if _event_digest(event) not in cursor.event_digests
            )
        except _FeedUnusable as unusable:
            return CatalogChanges(self.current_cursor(), full_crawl=str(unusable), went_back=unusable.went_back)
        return CatalogChanges(self._cursor_at(cursor.event, events).to_text(), frozenset(namespaces), frozenset(tables))

    def _require_log(self) -> None:
        if _LISTENER not in self._store.get_listeners():
            hint = (
                "set hive.metastore.transactional.event.listeners to org.apache.hive.hcatalog.listener.DbNotificationListener"
            )
            raise Unsupported(f"{self._source}: the metastore has no notification log", hint=hint)

    def _check_continuity(self, cursor: _FeedCursor) -> list[Any]:
        """Return the events from the overlap on, if they continue those that the cursor knows. Raise _FeedUnusable."""
        if self._store.get_metastore_id() != cursor.server:
            raise _FeedUnusable("another metastore answers")
        current = self._store.get_current_event_id()
        if current - cursor.event > MAX_EVENTS:
            raise _FeedUnusable(f"{current - cursor.event:,} events are more than a full crawl costs")
        if cursor.event - current > OVERLAP:
            # The next events get ids that are not read again.
            raise _FeedUnusable(f"the log went back from event {cursor.event} to {current}", went_back=True)
        events = self._read(cursor.event - OVERLAP)
        last_seen = [event for event in events if event.eventId == cursor.event]
        if last_seen:
            if not any(_event_digest(event) in cursor.event_digests for event in last_seen):
                raise _FeedUnusable(f"event {cursor.event} is not the one that was read", went_back=True)
        elif current < cursor.event:
            # Checked only if the event itself is absent: two concurrent writers may also set the counter back, below the event.
            raise _FeedUnusable(f"the log is at event {current}, before the cursor's {cursor.event}", went_back=True)
        elif current > cursor.event:
            # A cursor of an empty log has no digests; the log must then continue without a gap.
            following = min((event.eventId for event in events if event.eventId > cursor.event), default=None)
            if cursor.event_digests or following != cursor.event + 1:
                raise _FeedUnusable(f"the log has expired: event {cursor.event} is absent")
        elif cursor.event and not cursor.server:
            raise _FeedUnusable(f"event {cursor.event} is absent, and the metastore has no id that could be compared")
        return events

    def _read(self, after: int) -> list[Any]:
        """Return all events above ``after``, without duplicates."""
        events: dict[str, Any] = {}
        position, size = max(0, after), _BATCH
        while True:
            batch = self._store.list_events(position, size)
            events.update((_event_digest(event), event) for event in batch)
            if len(batch) < size:
                return list(events.values())
            # A batch may end between two events of one id, so that id is read again. If the whole batch has one id, a larger one
            # reaches the next id.
            last = max(event.eventId for event in batch)
            if last - 1 > position:
                position = last - 1
            else:
                size *= 2

    def _cursor_at(self, least: int, events: list[Any]) -> _FeedCursor:
        last = max([least, *(event.eventId for event in events)])
        digests = frozenset(_event_digest(event) for event in events if event.eventId > last - OVERLAP)
        return _FeedCursor(self._store.get_metastore_id(), last, digests)

    def _affected_objects(self, events: Iterable[Any]) -> tuple[set[Path], set[Path]]:
        """Return the namespaces and tables that the events name. Raise _FeedUnusable."""
        namespaces: set[Path] = set()
        tables: set[Path] = set()
        for event in events:
            catalog = (event.catName or DEFAULT_CATALOG).lower()
            if event.eventType in _IRRELEVANT or (self._store.levels == 1 and catalog != DEFAULT_CATALOG):
                continue
            parent: Path = (catalog,) if self._store.levels == 2 else ()
            if event.tableName:
                tables.add((*parent, event.dbName.lower(), event.tableName.lower()))
                if event.eventType == "ALTER_TABLE":
                    tables.add((*parent, *_previous_name(event)))
            elif event.dbName:
                namespaces.add((*parent, event.dbName.lower()))
                if parent and event.dbName == DEFAULT_DATABASE:
                    # Catalogs have no events of their own; each is created and dropped together with this database.
                    namespaces.add(parent)
        return namespaces, tables


def _previous_name(event: Any) -> tuple[str, str]:
    """Return the names of the database and the table before an ALTER_TABLE, which may be a rename. Raise _FeedUnusable."""
    try:
        text = event.message
        if (event.messageFormat or "").startswith("gzip"):
            text = gzip.decompress(base64.b64decode(text))
        message = json.loads(text)
        before = json.loads(message["tableObjBeforeJson"])
        # Thrift's JSON: field ids, then types.
        return before["2"]["str"].lower(), before["1"]["str"].lower()
    except (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError):
        raise _FeedUnusable(
            f"event {event.eventId} altered {event.dbName}.{event.tableName} in a way that cannot be read"
        ) from None


def _event_digest(event: Any) -> str:
    fields = (event.eventId, event.eventTime, event.eventType, event.catName, event.dbName, event.tableName, event.message)
    return hashlib.blake2b(repr(fields).encode(), digest_size=8).hexdigest()
