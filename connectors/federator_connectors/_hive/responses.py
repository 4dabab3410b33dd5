"""The one place where a metastore's answers are held against what it sends always, by method.

Thrift leaves fields out without a word, and drops those of another type. Required is what Hive 2.3.10, 3.1.3 and 4.0.1 send in every
answer: each list, also where it is empty, and of tables and databases what every entry has.
"""

from __future__ import annotations

from typing import Any

#: dotted fields of the result; ``*`` stands for every item of a list
REQUIRED: dict[str, tuple[str, ...]] = {
    "get_catalogs": ("names.*",),
    "get_catalog": ("catalog.name", "catalog.locationUri"),
    "get_databases": ("*",),
    "get_database": ("name",),
    "get_all_tables": ("*",),
    "get_tables_by_type": ("*",),
    "get_table_names_by_filter": ("*",),
    "get_table_req": ("table.tableName", "table.dbName", "table.tableType", "table.parameters"),
    "get_table_objects_by_name_req": ("tables.*.tableName", "tables.*.dbName", "tables.*.tableType", "tables.*.parameters"),
    "get_current_notificationEventId": ("eventId",),
    "get_next_notification": ("events.*.eventId", "events.*.eventType"),
}


def missing(method: str, answer: Any) -> str | None:
    """Return what an answer lacks, None if nothing. A method that is not named in ``REQUIRED`` must answer with anything at all."""
    if answer is None:
        return "a result"
    return next(filter(None, (_lacking(answer, field.split("."), field) for field in REQUIRED.get(method, ()))), None)


def _lacking(value: Any, steps: list[str], field: str) -> str | None:
    if value is None:
        return field
    if not steps:
        return None
    if steps[0] == "*":
        return next(filter(None, (_lacking(item, steps[1:], field) for item in value)), None)
    return _lacking(getattr(value, steps[0]), steps[1:], field)
