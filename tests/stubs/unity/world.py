"""What the stub knows: catalogs, schemas and tables, and what each call does to them.

The order of the checks and the texts are the recorded server's. What it was not recorded to do is marked "not recorded".
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Query = Mapping[str, str]

#: the most rows in one page, whatever was asked for
PAGE = 100
_NAME = re.compile(r"[a-zA-Z0-9_@-]{1,255}")
# What java.net.URI takes for no character of a URI.
_ILLEGAL = re.compile(r"""[\x00-\x20\x7f"<>\\^`{|}\[\]]|%(?![0-9A-Fa-f]{2})""")
_FORMATS = ("DELTA", "CSV", "JSON", "AVRO", "PARQUET", "ORC", "TEXT")
_COLUMN = {
    "name": None, "type_text": None, "type_json": None, "type_name": None, "type_precision": None, "type_scale": None,
    "type_interval_type": None, "position": None, "comment": None, "nullable": True, "partition_index": None,
}  # fmt: skip


class Refused(Exception):
    """An error answer."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message

    @property
    def body(self) -> Json:
        detail = {"reason": self.code, "@type": "google.rpc.ErrorInfo"}
        return {"error_code": self.code, "details": [detail], "message": self.message}


@dataclass
class World:
    """The server's state, and how it differs from an ordinary one.

    ``token``: what callers must show. ``denied``: full names of schemas whose tables nobody may list or read. ``volumes``: full
    names of schemas that hold one. ``refuses`` and ``loses``: beginnings of table properties that are answered with 400, as
    Databricks does, or dropped without a word. Only the token's
    answers are recorded; the texts for what is denied and for volumes are those of the server's source.
    """

    token: str | None = None
    denied: set[str] = field(default_factory=set)
    volumes: set[str] = field(default_factory=set)
    refuses: tuple[str, ...] = ()
    loses: tuple[str, ...] = ()
    catalogs: dict[str, Json] = field(default_factory=dict)
    schemas: dict[tuple[str, str], Json] = field(default_factory=dict)
    tables: dict[tuple[str, str, str], Json] = field(default_factory=dict)
    #: full names of tables that concurrent creates made
    broken: set[str] = field(default_factory=set)
    #: by full name of a table: principal and privileges; in the words of the server's own API document, not recorded
    grants: dict[str, list[Json]] = field(default_factory=dict)
    #: credentials for a table and an operation, in place of a cloud's STS
    issues: Callable[[Json, str], Json] | None = None
    #: by the server's own API document (``GET /metastore_summary``), not recorded
    metastore_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def temporary_credentials(self, body: Json) -> Json:
        """By the server's own API document, not recorded. Without ``issues``, the server does not have the call."""
        if self.issues is None:
            raise Refused(404, "NOT_FOUND", "")
        row = next((row for row in self.tables.values() if row["table_id"] == body["table_id"]), None)
        if row is None:
            raise Refused(404, "TABLE_NOT_FOUND", f"Table not found: {body['table_id']}")
        if f"{row['catalog_name']}.{row['schema_name']}" in self.denied:
            raise Refused(403, "PERMISSION_DENIED", "Access denied.")
        return self.issues(row, body["operation"])

    def permissions(self, name: str) -> Json:
        kind, _, full = name.partition("/")
        if kind != "table":
            raise Refused(400, "INVALID_ARGUMENT", f"No securable type: {kind}")
        self.table(full)
        if full.rpartition(".")[0] in self.denied:
            raise Refused(403, "PERMISSION_DENIED", "Access denied.")
        return {"privilege_assignments": self.grants.get(full, [])}

    # Catalogs

    def create_catalog(self, body: Json, principal: str | None) -> Json:
        name = _named(body)
        if name in self.catalogs:
            raise Refused(400, "CATALOG_ALREADY_EXISTS", f"Catalog already exists: {name}")
        made, root = str(uuid.uuid4()), body.get("storage_root")
        self.catalogs[name] = {
            "name": name, **_described(body), **_signed(principal), "id": made, "storage_root": root,
            "storage_location": root and f"{root}/__unitystorage/catalogs/{made}",
        }  # fmt: skip
        return self.catalogs[name]

    def catalog(self, name: str) -> Json:
        if name not in self.catalogs:
            raise Refused(404, "CATALOG_NOT_FOUND", f"Catalog not found: {name}")
        return self.catalogs[name]

    def list_catalogs(self, query: Query) -> Json:
        return _page("catalogs", self.catalogs.values(), query)

    def drop_catalog(self, name: str, query: Query) -> None:
        self.catalog(name)
        inside = [key for key in self.schemas if key[0] == name]
        if inside and query.get("force") != "true":
            raise Refused(400, "FAILED_PRECONDITION", "Cannot delete catalog with schemas. Use force=true to force deletion.")
        for key in inside:
            self.drop_schema(".".join(key), {"force": "true"})
        del self.catalogs[name]

    # Schemas

    def create_schema(self, body: Json, principal: str | None) -> Json:
        name, catalog = _named(body), body["catalog_name"]
        self.catalog(catalog)
        if (catalog, name) in self.schemas:
            raise Refused(400, "SCHEMA_ALREADY_EXISTS", f"Schema already exists: {name}")
        root = body.get("storage_root")
        self.schemas[catalog, name] = {
            "name": name, "catalog_name": catalog, **_described(body), "full_name": f"{catalog}.{name}", **_signed(principal),
            "schema_id": str(uuid.uuid4()), "storage_root": root, "storage_location": root,
        }  # fmt: skip
        return self.schemas[catalog, name]

    def schema(self, full: str) -> Json:
        catalog, _, name = full.partition(".")
        self.catalog(catalog)
        if (catalog, name) not in self.schemas:
            raise Refused(404, "SCHEMA_NOT_FOUND", f"Schema not found: {full}")
        return self.schemas[catalog, name]

    def list_schemas(self, query: Query) -> Json:
        catalog = _mandatory(query, "catalog_name")
        self.catalog(catalog)
        return _page("schemas", (row for key, row in self.schemas.items() if key[0] == catalog), query)

    def update_schema(self, full: str, body: Json) -> Json:
        """Replaces the whole map of properties."""
        row = self.schema(full)
        row |= {key: body[key] for key in ("properties", "comment") if key in body} | {"updated_at": _now()}
        return row

    def drop_schema(self, full: str, query: Query) -> None:
        self.schema(full)
        inside = [key for key in self.tables if ".".join(key[:2]) == full]
        if inside and query.get("force") != "true":
            raise Refused(400, "FAILED_PRECONDITION", "Cannot delete schema with tables")
        if full in self.volumes and query.get("force") != "true":
            raise Refused(400, "FAILED_PRECONDITION", "Cannot delete schema with volumes")
        for key in inside:
            if ".".join(key) in self.broken:
                raise Refused(500, "INTERNAL", f"Query did not return a unique result: {'.'.join(key)}")
            del self.tables[key]
        catalog, _, name = full.partition(".")
        del self.schemas[catalog, name]

    # Tables

    def create_table(self, raw: str, principal: str | None, *, raced: bool = False) -> Json:
        """``raced``: the check for an existing table came before another request's table."""
        body: Json = json.loads(raw)
        if body["data_source_format"] not in _FORMATS:
            raise Refused(400, "INVALID_ARGUMENT", _unread(body["data_source_format"], raw))
        name, catalog, schema = _named(body), body["catalog_name"], body["schema_name"]
        self._refuse_properties(body.get("properties") or {})
        full = f"{catalog}.{schema}.{name}"
        if body.get("columns") is None:
            raise Refused(
                500, "INTERNAL",
                'Cannot invoke "java.util.List.stream()" because the return value of '
                '"io.unitycatalog.server.model.CreateTable.getColumns()" is null',
            )  # fmt: skip
        self.schema(f"{catalog}.{schema}")
        self._see(f"{catalog}.{schema}")
        if self.token is not None and self._is_taken(str(body.get("storage_location"))):
            # Seen of 0.6.0 with authorization, also for an admin, and also where the name is taken.
            raise Refused(403, "PERMISSION_DENIED", "Access denied.")
        if (catalog, schema, name) in self.tables and not raced:
            raise Refused(400, "TABLE_ALREADY_EXISTS", f"Table already exists: {full}")
        if body.get("storage_location") is None:
            raise Refused(
                500, "INTERNAL",
                f"Error creating table: {full}: Cannot invoke "
                '"io.unitycatalog.server.utils.NormalizedURL.isCloudStorageRoot()" because "storageLocation" is null',
            )  # fmt: skip
        if _ILLEGAL.search(body["storage_location"]):
            # Seen of 0.6.0; the rest of the text is not recorded.
            raise Refused(400, "INVALID_ARGUMENT", f"Unsupported path: {body['storage_location']}")
        row = self._table(body, principal)
        if (catalog, schema, name) in self.tables:
            # Seen of 0.6.0: concurrent creates of one name all succeed, and it is broken for ever.
            self.broken.add(full)
        self.tables[catalog, schema, name] = row | {"properties": dict(sorted(row["properties"].items()))}
        return row

    def table(self, full: str) -> Json:
        names = full.split(".")
        if len(names) != 3:
            raise Refused(400, "INVALID_ARGUMENT", f"Invalid table name: {full}")
        catalog, schema, name = names
        self.schema(f"{catalog}.{schema}")
        self._see(f"{catalog}.{schema}")
        if full in self.broken:
            # The text is not recorded.
            raise Refused(500, "INTERNAL", f"Query did not return a unique result: {full}")
        if (catalog, schema, name) not in self.tables:
            raise Refused(404, "TABLE_NOT_FOUND", f"Table not found: {full}")
        return self.tables[catalog, schema, name]

    def list_tables(self, query: Query) -> Json:
        catalog, schema = _mandatory(query, "catalog_name"), _mandatory(query, "schema_name")
        self.schema(f"{catalog}.{schema}")
        self._see(f"{catalog}.{schema}")
        return _page("tables", (row for key, row in self.tables.items() if key[:2] == (catalog, schema)), query)

    def drop_table(self, full: str) -> None:
        try:
            self.table(full)
        except Refused as error:
            # This call, other than GET, names only the table.
            if error.code == "TABLE_NOT_FOUND":
                raise Refused(404, error.code, f"Table not found: {full.rpartition('.')[2]}") from None
            raise
        catalog, schema, name = full.split(".")
        del self.tables[catalog, schema, name]

    def _is_taken(self, location: str) -> bool:
        """Whether a location equals, contains or lies inside that of a table anywhere in the metastore."""
        wanted = location.removeprefix("file://").rstrip("/") + "/"
        others = [str(row["storage_location"]).removeprefix("file://").rstrip("/") + "/" for row in self.tables.values()]
        return any(wanted.startswith(other) or other.startswith(wanted) for other in others)

    def _table(self, body: Json, principal: str | None) -> Json:
        described = _described(body)
        kept_properties = {
            key: value for key, value in described["properties"].items() if not key.startswith(self.loses or ("\0",))
        }
        location = body["storage_location"]
        return {
            "name": body["name"], "catalog_name": body["catalog_name"], "schema_name": body["schema_name"],
            "table_type": body["table_type"], "data_source_format": body["data_source_format"],
            "columns": [_COLUMN | column for column in body["columns"]],
            "storage_location": f"file://{location}" if location.startswith("/") else location,
            "comment": described["comment"], "properties": kept_properties, **_signed(principal), "table_id": str(uuid.uuid4()),
            "view_definition": None, "view_dependencies": None,
        }  # fmt: skip

    def _refuse_properties(self, properties: Mapping[str, str]) -> None:
        refused = sorted(key for key in properties if self.refuses and key.startswith(self.refuses))
        if refused:
            raise Refused(400, "INVALID_PARAMETER_VALUE", f"Table properties are reserved: {', '.join(refused)}")

    def _see(self, schema: str) -> None:
        if schema in self.denied:
            raise Refused(403, "PERMISSION_DENIED", "Access denied.")


def _page(key: str, rows: Iterable[Json], query: Query) -> Json:
    """At most ``PAGE`` rows by name; a full page carries its last name as token, also when nothing comes after it."""
    asked = int(query.get("max_results") or 0)
    if asked < 0:
        raise Refused(400, "INVALID_ARGUMENT", "maxResults must be greater than or equal to 0")
    limit, after = min(asked or PAGE, PAGE), query.get("page_token", "")
    page = sorted((row for row in rows if row["name"] > after), key=lambda row: str(row["name"]))[:limit]
    return {key: page, "next_page_token": page[-1]["name"] if len(page) == limit else None}


def _named(body: Json) -> str:
    name = body.get("name") or ""
    if not name:
        raise Refused(400, "INVALID_ARGUMENT", "Name cannot be empty")
    if len(name) > 255:
        raise Refused(400, "INVALID_ARGUMENT", "Name cannot be longer than 255 characters")
    if _NAME.fullmatch(name) is None:
        raise Refused(400, "INVALID_ARGUMENT", "Name cannot contain a period, space, forward-slash, or control characters")
    return str(name)


def _described(body: Json) -> Json:
    return {"comment": body.get("comment"), "properties": dict(body.get("properties") or {})}


def _signed(principal: str | None) -> Json:
    now = _now()
    return {"owner": principal, "created_at": now, "created_by": principal, "updated_at": now, "updated_by": principal}


def _mandatory(query: Query, name: str) -> str:
    if name not in query:
        raise Refused(400, "INVALID_ARGUMENT", f"Mandatory parameter/header is missing: {name}")
    return query[name]


def _unread(value: str, raw: str) -> str:
    column = raw.index(json.dumps(value), raw.index('"data_source_format"')) + 1
    return (
        "failed to parse a JSON document: com.fasterxml.jackson.databind.exc.ValueInstantiationException: Cannot construct "
        f"instance of `io.unitycatalog.server.model.DataSourceFormat`, problem: Unexpected value '{value}'\n at [Source: REDACTED "
        f"(`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: {column}] (through reference chain: "
        'io.unitycatalog.server.model.CreateTable["data_source_format"])'
    )


def _now() -> int:
    return int(time.time() * 1000)
