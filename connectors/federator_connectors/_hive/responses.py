"""Required fields of metastore responses, by method.

Thrift silently omits fields, and silently drops fields of another type. The required fields are those that Hive 2.3.10, 3.1.3 and
4.0.1 send in every response: each list, even an empty one, and the fields that every table and every database has.
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


def find_missing(method: str, result: Any) -> str | None:
    """Return the first required field that a result lacks; None if it has all. Every method must return a result."""
    if result is None:
        return "a result"
    return next(filter(None, (_missing_field(result, field.split("."), field) for field in REQUIRED.get(method, ()))), None)


def _missing_field(value: Any, steps: list[str], field: str) -> str | None:
    if value is None:
        return field
    if not steps:
        return None
    if steps[0] == "*":
        return next(filter(None, (_missing_field(item, steps[1:], field) for item in value)), None)
    return _missing_field(getattr(value, steps[0]), steps[1:], field)
