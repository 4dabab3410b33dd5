"""The general Lance namespace spec: ``POST /<operationId>`` for its 14 operations.

Tree and rules are the same as below ``/v1``. Identifiers are a ``name`` and the list of its parents, paging fields are camelCase, and
errors are problem documents (RFC 7807).
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
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from federator.api.bodies import BoundedRoute
from federator.api.dependencies import IndexDep, PrincipalDep, SettingsDep
from federator.api.lance.alter import change_namespace_properties, change_table_properties
from federator.api.lance.create_table import create_empty_table
from federator.api.lance.drop_table import drop_with_data
from federator.api.lance.listings import list_child_namespaces, list_child_tables
from federator.api.lance.lookup import (
    get_any_table,
    namespace_properties,
    public_properties,
    resolve_namespace,
    shown_properties,
)
from federator.api.lance.namespaces import Confirm, confirmation, deployment_properties
from federator.api.lance.responses import json_response, parse_page_request, slice_page
from federator.api.lance.table_data import PoolDep
from federator.api.lance.table_detail import is_empty_directory
from federator.api.lance.write_access import WriterDep, write_headers
from federator.api.principals import Principal
from federator.api.route_paths import route_paths
from federator.connector import InvalidInput, NamespaceNotFound, TableNotFound
from federator.model import Kind, Path, TableRecord, path_key
from federator.model.text import is_storable
from federator.settings import Settings
from federator.store import Index, verifications

router = APIRouter(include_in_schema=False, route_class=BoundedRoute)

Properties = dict[str, str]


class _Body(BaseModel):
    model_config = ConfigDict(populate_by_name=True)


class _Paged(_Body):
    page_token: str | None = Field(default=None, validation_alias="pageToken", max_length=16_000)
    page_size: int | None = Field(default=None, validation_alias="pageSize")


#: the list identifier of a namespace; null and empty are the root
_ListIdentifier = list[str] | Literal[""] | None


class ListNamespaces(_Paged):
    parent: _ListIdentifier = Field(default=None, validation_alias=AliasChoices("parent", "id"))


class ListTables(_Paged):
    namespace: _ListIdentifier = Field(default=None, validation_alias=AliasChoices("namespace", "id"))


class Namespace(_Body):
    """A namespace: its name and its parents."""

    name: str
    parent: list[str] | None = None

    @property
    def path(self) -> Path:
        return _path(self.parent, self.name)


class AnyNamespace(_Body):
    """A namespace, by its name and parents or by its list identifier; or the root, for which all are null or empty."""

    name: str | None = None
    parent: list[str] | None = None
    id: _ListIdentifier = None

    @property
    def path(self) -> Path:
        if self.id and (self.name or self.parent):
            raise InvalidInput("id and name are mutually exclusive", hint="send only one of them")
        *parents, name = self.id or [*(self.parent or ()), self.name or ""]
        return _path(parents, name) if name or parents or self.id else ()


class CreateNamespace(Namespace):
    mode: Literal["CREATE", "EXIST_OK", "OVERWRITE"] | None = None
    options: Properties | None = None


class AlterNamespace(Namespace):
    updates: Properties | None = None
    removals: list[str] | None = None


class Table(_Body):
    """A table: its name and its namespace."""

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


class NamePage(BaseModel):
    """A page of names; only one of the lists is set."""

    namespaces: list[str] | None = None
    tables: list[str] | None = None
    next_page_token: str | None = Field(default=None, serialization_alias="nextPageToken")


class NamespaceResponse(BaseModel):
    name: str
    parent: list[str]
    properties: Properties


class TableResponse(BaseModel):
    """``managed_by``: the data is in the storage, or managed by the catalog's implementation."""

    name: str
    namespace: list[str]
    location: str | None
    properties: Properties
    managed_by: Literal["storage", "implementation"] = Field(serialization_alias="managedBy")


class Exists(BaseModel):
    exists: bool


def _path(parents: list[str] | None, name: str) -> Path:
    path = (*(parents or ()), name)
    if not all(path) or not is_storable("".join(path)):
        raise InvalidInput(f"the identifier {list(path)!r} contains an invalid name")
    return path


@router.post("/ListOperations")
def list_operations() -> dict[str, list[str]]:
    """List the operations. An operation that a catalog does not support raises Unsupported."""
    return {"operations": [path.removeprefix("/") for path in route_paths(router)]}


@router.post("/ListNamespaces")
def list_namespaces(
    index: IndexDep, settings: SettingsDep, principal: PrincipalDep, body: Annotated[ListNamespaces | None, Body()] = None
) -> Response:
    """List the names of the children; of the root, the sources."""
    request = body or ListNamespaces()
    size, after = parse_page_request(request.page_size, request.page_token, principal.scopes)
    names = list_child_namespaces(index, settings, principal.scopes, tuple(request.parent or ()), after=after, size=size)
    page, token = slice_page(names, size, principal.scopes)
    return json_response(NamePage(namespaces=page, next_page_token=token))


@router.post("/NamespaceExists")
def namespace_exists(
    index: IndexDep, settings: SettingsDep, principal: PrincipalDep, body: Annotated[AnyNamespace | None, Body()] = None
) -> Exists:
    """Check whether a namespace exists."""
    try:
        _load_namespace(index, settings, principal, body.path if body else ())
    except NamespaceNotFound:
        return Exists(exists=False)
    return Exists(exists=True)


@router.post("/GetNamespace")
def get_namespace(
    index: IndexDep, settings: SettingsDep, principal: PrincipalDep, body: Annotated[AnyNamespace | None, Body()] = None
) -> NamespaceResponse:
    """Return a namespace with its properties."""
    return _load_namespace(index, settings, principal, body.path if body else ())


@router.post("/CreateNamespace")
def create_namespace(body: CreateNamespace, write: WriterDep) -> Response:
    """Create a namespace in its catalog."""
    target = write.authorize(body.path)
    request = CreateNamespaceRequest(id=list(target.source_path), mode=body.mode, properties=body.options)
    result = write.execute(
        target, "create_namespace", lambda facade: facade.create_namespace(request), is_table=False, request=body
    )
    return json_response(_namespace_response(target.path, shown_properties(result.response.properties)), write_headers(result))


@router.post("/AlterNamespace")
def alter_namespace(body: AlterNamespace, write: WriterDep) -> Response:
    """Set and remove properties, if the catalog can alter namespaces."""
    target = write.authorize(body.path)
    updates, removals = body.updates or {}, body.removals or []
    result = write.execute(
        target,
        "alter_namespace",
        lambda facade: change_namespace_properties(facade, target, updates, removals),
        is_table=False,
        request=body,
    )
    return json_response(
        _namespace_response(target.path, namespace_properties(target.source, result.response)), write_headers(result)
    )


@router.post("/DropNamespace")
def drop_namespace(body: Namespace, write: WriterDep, x_federator_confirm: Confirm = None) -> Response:
    """Drop an empty namespace from its catalog."""
    target = write.authorize(body.path)
    request = DropNamespaceRequest(
        id=list(target.source_path), mode="Fail", behavior="Restrict", context=confirmation(x_federator_confirm)
    )
    result = write.execute(
        target, "drop_namespace", lambda facade: facade.drop_namespace(request), is_table=False, request=body
    )
    return Response("{}", media_type="application/json", headers=write_headers(result))


@router.post("/ListTables")
def list_tables(body: ListTables, index: IndexDep, settings: SettingsDep, principal: PrincipalDep) -> Response:
    """List the names of a namespace's tables, including managed ones; the root has none."""
    size, after = parse_page_request(body.page_size, body.page_token, principal.scopes)
    names = list_child_tables(
        index, settings, principal.scopes, tuple(body.namespace or ()), after=after, size=size, managed=True
    )
    page, token = slice_page(names, size, principal.scopes)
    return json_response(NamePage(tables=page, next_page_token=token))


@router.post("/TableExists")
def table_exists(body: Table, index: IndexDep, settings: SettingsDep, principal: PrincipalDep) -> Exists:
    """Check whether a table is declared, independently of the content of its location."""
    try:
        get_any_table(index, settings, principal.scopes, body.path)
    except TableNotFound:
        return Exists(exists=False)
    return Exists(exists=True)


@router.post("/GetTable")
def get_table(body: Table, index: IndexDep, settings: SettingsDep, principal: PrincipalDep) -> Response:
    """Return a table. Raise InvalidInput if verification found that its location does not contain a Lance table."""
    table = get_any_table(index, settings, principal.scopes, body.path)
    record = table.record
    if record.kind is Kind.UNDESCRIBED:
        raise InvalidInput(f"{path_key(table.path)} could not be described by the last crawl: {record.problem}")
    if record.canonical is not None and (record.kind is Kind.TABLE or record.is_read_only):
        with index.read() as connection:
            verification = verifications.find_verification(connection, table.source.name, record.canonical)
        state = verification.state if verification is not None else "valid"
        if verification is not None and (state in ("not_lance", "corrupt") or is_empty_directory(table, state)):
            raise InvalidInput(
                f"{path_key(table.path)}: the content of {record.location} does not follow the Lance table format: "
                f"{verification.message}"
            )
    return json_response(_table_response(table.path, record))


@router.post("/CreateTable")
def create_table(body: CreateTable, write: WriterDep, pool: PoolDep) -> Response:
    """Declare a table in its catalog and write it without rows."""
    target = write.authorize(body.path, is_table=True)
    table, result = create_empty_table(pool, write, target, body.arrow_schema, body.location, body.properties)
    return json_response(_table_response(target.path, table.record), write_headers(result))


@router.post("/RegisterTable")
def register_table(body: RegisterTable, write: WriterDep) -> Response:
    """Declare a table at the location of existing data."""
    target = write.authorize(body.path, is_table=True)
    request = RegisterTableRequest(id=list(target.source_path), location=body.location, properties=body.properties)
    result = write.execute(target, "register_table", lambda facade: facade.register_table(request), request=body)
    record = TableRecord(
        target.source.name, target.source_path, result.response.location, dict(result.response.properties or {})
    )
    return json_response(_table_response(target.path, record), write_headers(result))


@router.post("/AlterTable")
def alter_table(body: AlterTable, write: WriterDep) -> Response:
    """Set and remove properties, if the catalog can alter tables."""
    target = write.authorize(body.path, is_table=True)
    updates, removals = body.updates or {}, body.removals or []
    result = write.execute(
        target, "alter_table", lambda facade: change_table_properties(facade, target, updates, removals), request=body
    )
    return json_response(_table_response(target.path, result.response), write_headers(result))


@router.post("/DropTable")
def drop_table(body: Table, write: WriterDep, pool: PoolDep) -> Response:
    """Deregister a table and delete its data. Needs the role admin, and ``allow_drop = true`` in the source."""
    _, result = drop_with_data(pool, write, write.authorize(body.path, is_table=True))
    return Response("{}", media_type="application/json", headers=write_headers(result))


def _load_namespace(index: Index, settings: Settings, principal: Principal, path: Path) -> NamespaceResponse:
    namespace = resolve_namespace(index, settings, principal.scopes, path) if path else None
    own_properties = namespace.properties if namespace else {}
    return _namespace_response(
        namespace.path if namespace else path, {**own_properties, **deployment_properties(index, namespace)}
    )


def _namespace_response(path: Path, properties: dict[str, str]) -> NamespaceResponse:
    return NamespaceResponse(name=path[-1] if path else "", parent=list(path[:-1]), properties=properties)


def _table_response(path: Path, record: TableRecord) -> TableResponse:
    managed: Any = "implementation" if record.kind is Kind.MANAGED_TABLE and not record.is_read_only else "storage"
    return TableResponse(
        name=path[-1],
        namespace=list(path[:-1]),
        location=record.location,
        properties=public_properties(record),
        managed_by=managed,
    )
