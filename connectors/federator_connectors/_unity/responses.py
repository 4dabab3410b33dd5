"""Required fields of Unity's responses, by call.

Unity Catalog OSS 0.6.0 sent these fields in every recorded response (``tests/recordings/unity``). Fields that Databricks omits
when they have no value are optional. Databricks also omits an empty list; ``UnityClient`` distinguishes such a page from a
page with a list. ``CREDENTIALS`` is of the API's document: no response was recorded.
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
CREDENTIALS = {
    "aws_temp_credentials": maybe({"access_key_id": NAME, "secret_access_key": NAME, "session_token": _TEXT}),
    "azure_user_delegation_sas": maybe({"sas_token": NAME}), "gcp_oauth_token": maybe({"oauth_token": NAME}),
    "expiration_time": maybe(int), "url": _TEXT,
}  # fmt: skip
GRANTS = {"privilege_assignments": [{"principal": NAME, "privileges": [str]}]}
#: a page of a listing, by the key of its rows; only Databricks omits the key
PAGES = {"catalogs": {"catalogs": [CATALOG]}, "schemas": {"schemas": [SCHEMA]}, "tables": {"tables": [TABLE]}}
