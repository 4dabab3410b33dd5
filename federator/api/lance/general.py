"""The general Lance namespace spec: ``POST /<operationId>`` for its 14 operations, over the same tree and rules as ``/v1``.

Identifiers are a ``name`` and the list of names above it, paging is camelCase, errors are problem documents (RFC 7807).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Response
from lance_namespace import (
    CreateNamespaceRequest,
    DropNamespaceRequest,
    RegisterTableRequest,
)
from lance_namespace_urllib3_client.models.json_arrow_schema import JsonArrowSchema
from pydantic import BaseModel, ConfigDict, Field

from federator.api.access import Caller
from federator.api.context import CallerOf, IndexOf, SettingsOf
from federator.api.lance import creating
from federator.api.lance.altering import altered_namespace, altered_table
from federator.api.lance.answers import answered, page, wanted
from federator.api.lance.dropping import drop
from federator.api.lance.listings import child_namespaces, child_tables
from federator.api.lance.namespaces import Confirm, confirmation
from federator.api.lance.pool import PoolOf
from federator.api.lance.resolving import (
    known_table,
    resolve_namespace,
    shown_properties,
)
from federator.api.lance.writes import Writing, headers
from federator.connector import InvalidInput, NamespaceNotFound, TableNotFound, is_secret_key
from federator.connector.answers import namespace_properties
from federator.index import Index, datasets
from federator.model import Kind, NamespaceRecord, Path, TableRecord, path_key
from federator.settings import Settings

router = APIRouter(include_in_schema=False)

OPERATIONS = (
    "ListOperations", "ListNamespaces", "NamespaceExists", "GetNamespace", "CreateNamespace", "AlterNamespace", "DropNamespace",
    "ListTables", "TableExists", "GetTable", "CreateTable", "RegisterTable", "AlterTable", "DropTable",
)  # fmt: skip
Properties = dict[str, str]


class _Body(BaseModel):
    model_config = ConfigDict(populate_by_name=True)


class _Paged(_Body):
    page_token: str | None = Field(default=None, validation_alias="pageToken", max_length=16_000)
    page_size: int | None = Field(default=None, validation_alias="pageSize")


class ListNamespaces(_Paged):
    parent: list[str] | None = None


class ListTables(_Paged):
    namespace: list[str] | None = None


class Namespace(_Body):
    """A namespace by its name and those above it."""

    name: str
    parent: list[str] | None = None

    @property
    def path(self) -> Path:
        return _path(self.parent, self.name)


class CreateNamespace(Namespace):
    mode: Literal["CREATE", "EXIST_OK", "OVERWRITE"] | None = None
    options: Properties | None = None


class AlterNamespace(Namespace):
    updates: Properties | None = None
    removals: list[str] | None = None


class Table(_Body):
    """A table by its name and the namespace that it is in."""

    name: str
    namespace: list[str] | None = None

    @property
    def path(self) -> Path:
        return _path(self.namespace, self.name)


class CreateTable(Table):
    arrow_schema: JsonArrowSchema = Field(validation_alias="schema")
    location: str | None = None
    properties: Properties | None = None


class RegisterTable(Table):
    location: str
    properties: Properties | None = None


class AlterTable(Table):
    updates: Properties | None = None
    removals: list[str] | None = None


class Names(BaseModel):
    """A page of names; one of the lists is there."""

    namespaces: list[str] | None = None
    tables: list[str] | None = None
    next_page_token: str | None = Field(default=None, serialization_alias="nextPageToken")


class ShownNamespace(BaseModel):
    name: str
    parent: list[str]
    properties: Properties


class ShownTable(BaseModel):
    """``managed_by`` tells whose the table's data is: the storage's, or the catalog's own."""

    name: str
    namespace: list[str]
    location: str | None
    properties: Properties
    managed_by: Literal["storage", "implementation"] = Field(serialization_alias="managedBy")


class Exists(BaseModel):
    exists: bool


def _path(above: list[str] | None, name: str) -> Path:
    path = (*(above or ()), name)
    if not all(path) or any("\0" in level for level in path):
        raise InvalidInput(f"the identifier {list(path)!r} has a name that is none")
    return path


@router.post("/ListOperations")
def list_operations() -> dict[str, list[str]]:
    """The operations that are served; what one catalog cannot do answers Unsupported."""
    return {"operations": list(OPERATIONS)}


@router.post("/ListNamespaces")
def list_namespaces(
    index: IndexOf, settings: SettingsOf, caller: CallerOf, body: Annotated[ListNamespaces | None, Body()] = None
) -> Response:
    """The children's own names; of the root, the sources."""
    asked = body or ListNamespaces()
    size, after = wanted(asked.page_size, asked.page_token)
    names = child_namespaces(index, settings, caller.scopes, tuple(asked.parent or ()), after=after, size=size)
    shown, token = page(names, size)
    return answered(Names(namespaces=shown, next_page_token=token))


@router.post("/NamespaceExists")
def namespace_exists(body: Namespace, index: IndexOf, settings: SettingsOf, caller: CallerOf) -> Exists:
    """Whether the namespace is there."""
    try:
        resolve_namespace(index, settings, caller.scopes, body.path)
    except NamespaceNotFound:
        return Exists(exists=False)
    return Exists(exists=True)


@router.post("/GetNamespace")
def get_namespace(body: Namespace, index: IndexOf, settings: SettingsOf, caller: CallerOf) -> ShownNamespace:
    """The namespace and its properties."""
    return _shown_namespace(index, settings, caller, body.path)


@router.post("/CreateNamespace")
def create_namespace(body: CreateNamespace, write: Writing) -> Response:
    """Made by its catalog."""
    target = write.target(body.path)
    request = CreateNamespaceRequest(id=list(target.inner), mode=body.mode, properties=body.options)
    made = write.carry_out(
        target, "create_namespace", lambda face: face.create_namespace(request), is_table=False, request=body
    )
    record = NamespaceRecord(target.source.name, target.inner, dict(made.answer.properties or {}))
    return answered(_namespace_of(target.path, record), headers(made))


@router.post("/AlterNamespace")
def alter_namespace(body: AlterNamespace, write: Writing) -> Response:
    """Properties set and removed, where its catalog changes namespaces in place."""
    target = write.target(body.path)
    updates, removals = body.updates or {}, body.removals or []
    made = write.carry_out(
        target, "alter_namespace", lambda face: altered_namespace(face, target, updates, removals), is_table=False, request=body
    )
    return answered(_namespace_of(target.path, made.answer), headers(made))


@router.post("/DropNamespace")
def drop_namespace(body: Namespace, write: Writing, x_federator_confirm: Confirm = None) -> Response:
    """Dropped by its catalog where it is empty."""
    target = write.target(body.path)
    request = DropNamespaceRequest(
        id=list(target.inner), mode="Fail", behavior="Restrict", context=confirmation(x_federator_confirm)
    )
    made = write.carry_out(target, "drop_namespace", lambda face: face.drop_namespace(request), is_table=False, request=body)
    return Response("{}", media_type="application/json", headers=headers(made))


@router.post("/ListTables")
def list_tables(body: ListTables, index: IndexOf, settings: SettingsOf, caller: CallerOf) -> Response:
    """The names of a namespace's tables, managed ones too; the root has none."""
    size, after = wanted(body.page_size, body.page_token)
    names = child_tables(index, settings, caller.scopes, tuple(body.namespace or ()), after=after, size=size, managed=True)
    shown, token = page(names, size)
    return answered(Names(tables=shown, next_page_token=token))


@router.post("/TableExists")
def table_exists(body: Table, index: IndexOf, settings: SettingsOf, caller: CallerOf) -> Exists:
    """Whether the table is there, whatever lies at its location."""
    try:
        known_table(index, settings, caller.scopes, body.path)
    except TableNotFound:
        return Exists(exists=False)
    return Exists(exists=True)


@router.post("/GetTable")
def get_table(body: Table, index: IndexOf, settings: SettingsOf, caller: CallerOf) -> Response:
    """The table. InvalidInput where verification found that what lies at its location is no Lance table."""
    table = known_table(index, settings, caller.scopes, body.path)
    record = table.record
    if record.kind is Kind.UNDESCRIBED:
        raise InvalidInput(f"{path_key(table.path)} could not be described by the last crawl: {record.problem}")
    if record.canonical is not None and record.kind is Kind.TABLE:
        with index.read() as connection:
            seen = datasets.states(connection, [record.canonical]).get(record.canonical)
        if seen is not None and seen["state"] in ("not_lance", "corrupt"):
            raise InvalidInput(
                f"{path_key(table.path)}: what lies at {record.location} does not follow the Lance table format: {seen['message']}"
            )
    return answered(_table_of(table.path, record))


@router.post("/CreateTable")
def create_table(body: CreateTable, write: Writing, pool: PoolOf) -> Response:
    """Declared in its catalog, and written empty with its schema."""
    target = write.target(body.path)
    table, made = creating.create_empty(pool, write, target, body.arrow_schema, body.location, body.properties)
    return answered(_table_of(target.path, table.record), headers(made))


@router.post("/RegisterTable")
def register_table(body: RegisterTable, write: Writing) -> Response:
    """Declared at a location where the table exists."""
    target = write.target(body.path)
    request = RegisterTableRequest(id=list(target.inner), location=body.location, properties=body.properties)
    made = write.carry_out(target, "register_table", lambda face: face.register_table(request), request=body)
    record = TableRecord(target.source.name, target.inner, made.answer.location, dict(made.answer.properties or {}))
    return answered(_table_of(target.path, record), headers(made))


@router.post("/AlterTable")
def alter_table(body: AlterTable, write: Writing) -> Response:
    """Properties set and removed, where its catalog changes tables in place."""
    target = write.target(body.path)
    updates, removals = body.updates or {}, body.removals or []
    made = write.carry_out(target, "alter_table", lambda face: altered_table(face, target, updates, removals), request=body)
    return answered(_table_of(target.path, made.answer), headers(made))


@router.post("/DropTable")
def drop_table(body: Table, write: Writing, pool: PoolOf) -> Response:
    """Deregistered, and its data deleted: only for a source with ``allow_drop = true``, by an admin."""
    _, made = drop(pool, write, write.target(body.path))
    return Response("{}", media_type="application/json", headers=headers(made))


def _shown_namespace(index: Index, settings: Settings, caller: Caller, path: Path) -> ShownNamespace:
    found = resolve_namespace(index, settings, caller.scopes, path)
    return _namespace_of(found.path, found.record)


def _namespace_of(path: Path, record: NamespaceRecord) -> ShownNamespace:
    properties = {key: text for key, text in namespace_properties(record).items() if not is_secret_key(key)}
    return ShownNamespace(name=path[-1], parent=list(path[:-1]), properties=properties)


def _table_of(path: Path, record: TableRecord) -> ShownTable:
    managed: Any = "implementation" if record.kind is Kind.MANAGED_TABLE else "storage"
    return ShownTable(
        name=path[-1],
        namespace=list(path[:-1]),
        location=record.location,
        properties=shown_properties(record),
        managed_by=managed,
    )
