"""Objects named by the events of the notification log, with messages as Hive 3 (JSON) and Hive 4 (compressed) write them."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from federator.connector import CatalogChanges
from federator.model import Path
from federator_connectors._hive import thrift_types
from federator_connectors._hive.change_feed import OVERLAP, ChangeFeed

BEFORE = json.dumps({"tableObjBeforeJson": json.dumps({"1": {"str": "Old"}, "2": {"str": "d"}})})
SMALL = base64.b64encode(gzip.compress(BEFORE.encode())).decode()


def event(number: int, kind: str, **fields: Any) -> Any:
    return thrift_types.NotificationEvent(
        eventId=number, eventTime=1, eventType=kind, **{"catName": "hive", "dbName": "d", **fields}
    )


class Log:
    """A metastore's log, for what no server can be brought to do at will."""

    levels = 2

    def __init__(self, *events: Any, identity: str = "one") -> None:
        self.log = list(events)
        self._identity = identity

    def get_listeners(self) -> str:
        return "org.apache.hive.hcatalog.listener.DbNotificationListener"

    def get_metastore_id(self) -> str:
        return self._identity

    def get_current_event_id(self) -> int:
        return max((event.eventId for event in self.log), default=0)

    def list_events(self, after: int, most: int) -> list[Any]:
        return [event for event in sorted(self.log, key=lambda event: int(event.eventId)) if event.eventId > after][:most]


def feed(log: Log) -> ChangeFeed:
    return ChangeFeed("lake", log)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("what", "namespaces", "tables"),
    [
        (event(1, "CREATE_TABLE", tableName="T"), set(), {("hive", "d", "t")}),
        (event(1, "ALTER_TABLE", tableName="new", message=BEFORE), set(), {("hive", "d", "old"), ("hive", "d", "new")}),
        (
            event(1, "ALTER_TABLE", tableName="new", message=SMALL, messageFormat="gzip(json-2.0)"),
            set(),
            {("hive", "d", "old"), ("hive", "d", "new")},
        ),
        (event(1, "DROP_DATABASE", catName="c"), {("c", "d")}, set()),
        (event(1, "CREATE_DATABASE", catName="c", dbName="default"), {("c",), ("c", "default")}, set()),
        (event(1, "ADD_PARTITION", tableName="t"), set(), set()),
        (event(1, "OPEN_TXN", dbName=None), set(), set()),
        (event(1, "A_TYPE_OF_TOMORROW", tableName="t"), set(), {("hive", "d", "t")}),
        (event(1, "CREATE_TABLE", tableName="t", catName=None), set(), {("hive", "d", "t")}),
    ],
)
def test_the_objects_that_an_event_names(what: Any, namespaces: set[Path], tables: set[Path]) -> None:
    log = Log()
    cursor = feed(log).current_cursor()
    log.log.append(what)
    changes = feed(log).changes_since(cursor)
    assert (changes.namespaces, changes.tables, changes.full_crawl) == (namespaces, tables, None)
    assert feed(log).changes_since(changes.cursor) == CatalogChanges(changes.cursor)


def test_an_event_that_commits_late_or_shares_its_id_is_not_lost() -> None:
    log = Log(*(event(number, "CREATE_TABLE", tableName=f"t{number}") for number in (1, 2, 4)))
    cursor = feed(log).current_cursor()
    log.log += [event(3, "CREATE_TABLE", tableName="late"), event(4, "CREATE_TABLE", tableName="twin")]
    assert feed(log).changes_since(cursor).tables == {("hive", "d", "late"), ("hive", "d", "twin")}


def test_a_cursor_stays_small() -> None:
    log = Log(*(event(number, "CREATE_TABLE", tableName=f"t{number}") for number in range(1, 5001)))
    start = feed(Log()).current_cursor()
    changes = feed(log).changes_since(start)
    assert len(changes.tables) == 5000
    assert len(changes.cursor) < 30 * OVERLAP


def test_without_an_identity_an_expired_log_proves_nothing() -> None:
    log = Log(event(1, "CREATE_TABLE", tableName="t"), identity="")
    cursor = feed(log).current_cursor()
    assert feed(log).changes_since(cursor).full_crawl is None
    log.log.clear()
    log.get_current_event_id = lambda: 1  # type: ignore[method-assign]
    assert "no id that could be compared" in (feed(log).changes_since(cursor).full_crawl or "")


def test_a_counter_that_went_back_a_little_loses_nothing() -> None:
    """Two writers at once may set Derby's counter back: what comes next gets ids that were used before."""
    log = Log(*(event(number, "CREATE_TABLE", tableName=f"t{number}") for number in range(1, 301)))
    cursor = feed(log).current_cursor()
    log.get_current_event_id = lambda: 300 - OVERLAP  # type: ignore[method-assign]
    log.log += [event(number, "CREATE_TABLE", tableName=f"again{number}") for number in (300 - OVERLAP + 1, 299, 300)]
    changes = feed(log).changes_since(cursor)
    assert changes.full_crawl is None
    assert changes.tables == {("hive", "d", f"again{number}") for number in (300 - OVERLAP + 1, 299, 300)}
    assert feed(log).changes_since(changes.cursor) == CatalogChanges(changes.cursor)


def test_a_counter_that_went_back_further_than_is_read_again_needs_a_full_crawl() -> None:
    log = Log(*(event(number, "CREATE_TABLE", tableName=f"t{number}") for number in range(1, 301)))
    cursor = feed(log).current_cursor()
    log.get_current_event_id = lambda: 300 - OVERLAP - 1  # type: ignore[method-assign]
    log.log.append(event(300 - OVERLAP, "CREATE_TABLE", tableName="lost"))
    assert feed(log).changes_since(cursor).full_crawl == f"the log went back from event 300 to {300 - OVERLAP - 1}"


@pytest.mark.parametrize(
    ("left", "current", "reason"),
    [
        # The event that was read last is gone, and the counter does not say that it expired.
        (range(1, 300), 299, "the log is at event 299, before the cursor's 300"),
        (range(1, 300), 301, "the log has expired: event 300 is absent"),
        (range(0), 300, None),
    ],
)
def test_a_counter_behind_its_last_event_is_a_doubt_only_without_that_event(
    left: range, current: int, reason: str | None
) -> None:
    events = {number: event(number, "CREATE_TABLE", tableName=f"t{number}") for number in range(1, 301)}
    log = Log(*events.values())
    cursor = feed(log).current_cursor()
    log.log = [events[number] for number in left]
    log.get_current_event_id = lambda: current  # type: ignore[method-assign]
    assert feed(log).changes_since(cursor).full_crawl == reason
