"""What has happened in a metastore since a moment, from its notification log (``DbNotificationListener``).

The log is evidence of change, not of state: its events only name what to read again. It is not trusted further than it can be
checked. A cursor remembers the last events that were read; if the log does not show the last of them as it was, because it has
expired, because another or a restored metastore answers, or because ids went backwards, only a full crawl can tell what happened.

Ids are not handed out in the order in which their transactions end, and Derby hands some out twice: each reading starts some ids
before its cursor and leaves out what was seen. A catalog's own description and location have no events.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from federator.connector import Changes, Unsupported
from federator.model import Path
from federator_connectors._hive.metastore import DEFAULT_DATABASE, Metastore

#: ids before the cursor that are read again: more than transactions that are open at once
OVERLAP = 200
#: beyond, a full crawl is cheaper than looking at objects one by one
MOST_EVENTS = 50_000
_BATCH = 2_000
_LISTENER = "DbNotificationListener"
_DEFAULT_CATALOG = "hive"
# Events that change no record of a namespace or table; any other type that names an object counts as a change of it.
_IRRELEVANT = frozenset({
    "ADD_PARTITION", "ALTER_PARTITION", "ALTER_PARTITIONS", "DROP_PARTITION", "INSERT", "CREATE_FUNCTION", "DROP_FUNCTION",
    "CREATE_INDEX", "DROP_INDEX", "ALTER_INDEX", "OPEN_TXN", "COMMIT_TXN", "ABORT_TXN", "ALLOC_WRITE_ID", "ACID_WRITE",
    "BATCH_ACID_WRITE", "COMMIT_COMPACTION", "RELOAD", "ADD_PRIMARYKEY", "ADD_FOREIGNKEY", "ADD_UNIQUECONSTRAINT",
    "ADD_NOTNULLCONSTRAINT", "ADD_DEFAULTCONSTRAINT", "ADD_CHECKCONSTRAINT", "DROP_CONSTRAINT", "UPDATE_TABLE_COLUMN_STAT",
    "DELETE_TABLE_COLUMN_STAT", "UPDATE_PARTITION_COLUMN_STAT", "DELETE_PARTITION_COLUMN_STAT",
    "UPDATE_PARTITION_COLUMN_STAT_BATCH",
})  # fmt: skip


class _Doubt(Exception):
    """Why the log cannot say what has changed. ``went_back``: its past is not the one that the cursor saw."""

    def __init__(self, text: str, *, went_back: bool = False) -> None:
        super().__init__(text)
        self.went_back = went_back


@dataclass(frozen=True, slots=True)
class _Cursor:
    """``seen``: fingerprints of the events among the last ``OVERLAP`` ids up to ``event``."""

    server: str
    event: int
    seen: frozenset[str]

    def text(self) -> str:
        return json.dumps({"server": self.server, "event": self.event, "seen": sorted(self.seen)}, separators=(",", ":"))

    @classmethod
    def of(cls, text: str) -> _Cursor:
        try:
            values = json.loads(text)
            return cls(str(values["server"]), int(values["event"]), frozenset(values["seen"]))
        except (ValueError, KeyError, TypeError):
            raise _Doubt("the cursor is none of this connector's") from None


class ChangeFeed:
    """Reads the log of one metastore. Raises CatalogError; Unsupported where the server keeps no log."""

    def __init__(self, source: str, store: Metastore) -> None:
        self._source = source
        self._store = store

    def cursor(self) -> str:
        """Where the log is now."""
        self._require_log()
        current = self._store.current_event()
        return self._cursor_at(current, self._read(current - OVERLAP)).text()

    def since(self, text: str) -> Changes:
        """What to read again, or why nothing less than a full crawl will do."""
        self._require_log()
        try:
            cursor = _Cursor.of(text)
            events = self._checked(cursor)
            namespaces, tables = self._named(event for event in events if _fingerprint(event) not in cursor.seen)
        except _Doubt as doubt:
            return Changes(self.cursor(), full_crawl=str(doubt), went_back=doubt.went_back)
        return Changes(self._cursor_at(cursor.event, events).text(), frozenset(namespaces), frozenset(tables))

    def _require_log(self) -> None:
        if _LISTENER not in self._store.listeners():
            hint = (
                "set hive.metastore.transactional.event.listeners to org.apache.hive.hcatalog.listener.DbNotificationListener"
            )
            raise Unsupported(f"{self._source}: the metastore keeps no log of changes", hint=hint)

    def _checked(self, cursor: _Cursor) -> list[Any]:
        """The events from the overlap on, if they continue what the cursor saw. Raises _Doubt."""
        if self._store.identity() != cursor.server:
            raise _Doubt("another metastore answers")
        current = self._store.current_event()
        if current - cursor.event > MOST_EVENTS:
            raise _Doubt(f"{current - cursor.event:,} events are more than a full crawl costs")
        if cursor.event - current > OVERLAP:
            # What happens next gets ids that are not read again.
            raise _Doubt(f"the log went back from event {cursor.event} to {current}", went_back=True)
        events = self._read(cursor.event - OVERLAP)
        last_seen = [event for event in events if event.eventId == cursor.event]
        if last_seen:
            if not any(_fingerprint(event) in cursor.seen for event in last_seen):
                raise _Doubt(f"event {cursor.event} is not the one that was read", went_back=True)
        elif current < cursor.event:
            # Asked only where the event itself is gone: two writers at once may also set the counter back, to below it.
            raise _Doubt(f"the log is at event {current}, before the cursor's {cursor.event}", went_back=True)
        elif current > cursor.event:
            # Nothing had been seen of a log that was empty: then it must go on without a gap.
            following = min((event.eventId for event in events if event.eventId > cursor.event), default=None)
            if cursor.seen or following != cursor.event + 1:
                raise _Doubt(f"the log has expired: event {cursor.event} is gone")
        elif cursor.event and not cursor.server:
            raise _Doubt(f"event {cursor.event} is gone, and nothing else tells this metastore from another")
        return events

    def _read(self, after: int) -> list[Any]:
        """Every event above ``after``, each once."""
        found: dict[str, Any] = {}
        position = max(0, after)
        while True:
            batch = self._store.events(position, _BATCH)
            known = len(found)
            found.update((_fingerprint(event), event) for event in batch)
            if len(batch) < _BATCH or len(found) == known:
                return list(found.values())
            # A batch may end between two events of one id.
            position = max(event.eventId for event in batch) - 1

    def _cursor_at(self, least: int, events: list[Any]) -> _Cursor:
        last = max([least, *(event.eventId for event in events)])
        seen = frozenset(_fingerprint(event) for event in events if event.eventId > last - OVERLAP)
        return _Cursor(self._store.identity(), last, seen)

    def _named(self, events: Iterable[Any]) -> tuple[set[Path], set[Path]]:
        """The namespaces and tables that events name. Raises _Doubt."""
        namespaces: set[Path] = set()
        tables: set[Path] = set()
        for event in events:
            catalog = (event.catName or _DEFAULT_CATALOG).lower()
            if event.eventType in _IRRELEVANT or (self._store.levels == 1 and catalog != _DEFAULT_CATALOG):
                continue
            above: Path = (catalog,) if self._store.levels == 2 else ()
            if event.tableName:
                tables.add((*above, event.dbName.lower(), event.tableName.lower()))
                if event.eventType == "ALTER_TABLE":
                    tables.add((*above, *_name_before(event)))
            elif event.dbName:
                namespaces.add((*above, event.dbName.lower()))
                if above and event.dbName == DEFAULT_DATABASE:
                    # Catalogs have no events of their own; each comes and goes with this database.
                    namespaces.add(above)
        return namespaces, tables


def _name_before(event: Any) -> tuple[str, str]:
    """Database and table as they were called before an ALTER_TABLE, which may have renamed it. Raises _Doubt."""
    try:
        text = event.message
        if (event.messageFormat or "").startswith("gzip"):
            text = gzip.decompress(base64.b64decode(text))
        message = json.loads(text)
        before = json.loads(message["tableObjBeforeJson"])
        # Thrift's JSON: field ids, then types.
        return before["2"]["str"].lower(), before["1"]["str"].lower()
    except (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError):
        raise _Doubt(f"event {event.eventId} altered {event.dbName}.{event.tableName} in a way that cannot be read") from None


def _fingerprint(event: Any) -> str:
    fields = (event.eventId, event.eventTime, event.eventType, event.catName, event.dbName, event.tableName, event.message)
    return hashlib.blake2b(repr(fields).encode(), digest_size=8).hexdigest()
