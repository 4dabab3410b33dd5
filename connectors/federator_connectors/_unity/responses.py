"""The one place where Unity's responses are held against what the server sends always, by call.

Required is what Unity Catalog OSS 0.6.0 was recorded to send in every response (``tests/recordings/unity``), less what Databricks
leaves out where it has no value. Databricks also leaves out an empty list; ``UnityApi`` tells such a page from a whole one.
"""

from __future__ import annotations

from federator.connector.shapes import NAME, TEXTS, maybe

_TEXT = maybe(str)
CATALOG = {"name": NAME, "id": _TEXT, "comment": _TEXT, "owner": _TEXT, "storage_root": _TEXT, "properties": maybe(TEXTS)}
SCHEMA = {
    "name": NAME, "catalog_name": NAME, "schema_id": _TEXT, "comment": _TEXT, "owner": _TEXT, "storage_root": _TEXT,
    "properties": maybe(TEXTS),
}  # fmt: skip
TABLE = {
    "name": NAME, "catalog_name": NAME, "schema_name": NAME, "table_type": NAME, "table_id": _TEXT, "comment": _TEXT, "owner": _TEXT,
    "storage_location": _TEXT, "properties": maybe(TEXTS), "columns": maybe([dict]),
}  # fmt: skip
GRANTS = {"privilege_assignments": [{"principal": NAME, "privileges": [str]}]}
#: a page of a listing, by the key of its rows, which only Databricks leaves out
PAGES = {"schemas": {"schemas": [SCHEMA]}, "tables": {"tables": [TABLE]}}
