"""Table routes of the Lance protocol. Reads use the index; declarations use the owning catalog.

The routes use catalog entries and verification results only. ``table_data`` has access to the content of tables.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response
from lance_namespace import (
    DeclareTableRequest,
    DeclareTableResponse,
    DeregisterTableRequest,
    DeregisterTableResponse,
    DescribeTableRequest,
    DescribeTableResponse,
    DropTableResponse,
    ListTablesResponse,
    RegisterTableRequest,
    RegisterTableResponse,
    RenameTableRequest,
    RenameTableResponse,
    TableExistsRequest,
)
from lance_namespace_urllib3_client.models.json_arrow_schema import JsonArrowSchema
from lance_namespace_urllib3_client.models.table_basic_stats import TableBasicStats

from federator.api.bodies import BoundedRoute
from federator.api.dependencies import IndexDep, PrincipalDep, SettingsDep
from federator.api.lance import table_detail
from federator.api.lance.drop_table import drop_with_data
from federator.api.lance.identifiers import DEFAULT_DELIMITER, Delimiter, NamespaceId, TableId
from federator.api.lance.lancedb_dialect import LancedbDialect
from federator.api.lance.listings import list_child_tables
from federator.api.lance.lookup import VisibleTable, capabilities, get_lance_table, public_properties
from federator.api.lance.responses import Limit, PageToken, json_response, parse_page_request, slice_page
from federator.api.lance.table_data import PoolDep
from federator.api.lance.vended_options import VendingDep
from federator.api.lance.write_access import AuthorizedWriter, WriterDep, WriteTarget, write_headers
from federator.apply.direct_writes import WriteResult
from federator.apply.publication import AffectedObject
from federator.connector import LANCE, TABLE_TYPE_KEY, InvalidInput, Unsupported
from federator.connector.errors import InvalidTableState
from federator.lance.facade_mapping import table_uri
from federator.model import Path, TableRecord, parse_path_key, path_key
from federator.model.scopes import Scopes
from federator.settings import Settings
from federator.store import Index
from federator.views import listing

router = APIRouter(prefix="/v1", include_in_schema=False, route_class=BoundedRoute)

IncludeDeclared = Annotated[
    bool | None, Query(description="false: omit tables that are declared, but not written yet according to verification")
]
Flag = Annotated[bool | None, Query()]


@router.get("/namespace/{id}/table/list")
def list_tables(
    id: NamespaceId, index: IndexDep, settings: SettingsDep, principal: PrincipalDep,  # noqa: A002
    page_token: PageToken = None, limit: Limit = None, include_declared: IncludeDeclared = None,
) -> Response:  # fmt: skip
    """List the names of a namespace's Lance tables; the root has none."""
    size, after = parse_page_request(limit, page_token, principal.scopes)
    written = include_declared is False
    names = id.read_existing(
        None, lambda path: list_child_tables(index, settings, principal.scopes, path, after=after, size=size, written=written)
    )
    page, token = slice_page(names, size, principal.scopes)
    return json_response(ListTablesResponse(tables=page, page_token=token))


@router.get("/table")
def list_all_tables(
    index: IndexDep, settings: SettingsDep, principal: PrincipalDep, delimiter: Delimiter = DEFAULT_DELIMITER,
    page_token: PageToken = None, limit: Limit = None, include_declared: IncludeDeclared = None,
) -> Response:  # fmt: skip
    """List the object ids of all tables of all sources, joined with the delimiter."""
    size, after = parse_page_request(limit, page_token, principal.scopes)
    paths = _list_all(index, settings, principal.scopes, parse_path_key(after), size + 1, written=include_declared is False)
    _, token = slice_page([path_key(path) for path in paths], size, principal.scopes)
    return json_response(ListTablesResponse(tables=[delimiter.join(path) for path in paths[:size]], page_token=token))


def _list_all(index: Index, settings: Settings, scopes: Scopes, after: Path, limit: int, *, written: bool) -> list[Path]:
    found_paths: list[Path] = []
    with index.read() as connection:
        for source in sorted(name for name in settings.sources if scopes.is_visible((name,))):
            after_path = after[1:] if after and after[0] == source else ()
            if len(found_paths) >= limit or (after and source < after[0]):
                continue
            paths = listing.list_all_table_paths(
                connection, source, after=after_path, limit=limit - len(found_paths), scopes=scopes, written=written
            )
            found_paths += [(source, *path) for path in paths]
    return found_paths


@router.post("/table/{id}/exists")
def table_exists(
    id: TableId, index: IndexDep, settings: SettingsDep, principal: PrincipalDep, pool: PoolDep,  # noqa: A002
    body: Annotated[TableExistsRequest | None, Body()] = None,
) -> Response:  # fmt: skip
    """Return 200 without a body if the table (and the version, if given) exists, else 404."""
    table = id.read_existing(body.id if body else None, lambda path: get_lance_table(index, settings, principal.scopes, path))
    if body and body.version is not None:
        table_detail.read_table_detail(pool, table, version=body.version)
    return Response()


@router.post("/table/{id}/describe")
def describe_table(
    id: TableId, index: IndexDep, settings: SettingsDep, principal: PrincipalDep, pool: PoolDep, vending: VendingDep,  # noqa: A002
    body: Annotated[DescribeTableRequest | None, Body()] = None,
    with_table_uri: Flag = None, load_detailed_metadata: Flag = None, check_declared: Flag = None,
    lancedb: LancedbDialect = None,
) -> Response:  # fmt: skip
    """Return the catalog entry of a table. ``load_detailed_metadata`` adds version, schema and statistics, read from its storage."""
    request = body or DescribeTableRequest()
    table = id.read_existing(request.id, lambda path: get_lance_table(index, settings, principal.scopes, path))
    storage = vending.options_for(table, requested=request.vend_credentials)
    marker = {TABLE_TYPE_KEY: LANCE} if capabilities(table.source).keeps_properties else {}
    response = DescribeTableResponse(
        table=table.path[-1], namespace=list(table.path[:-1]), location=table.record.location,
        properties=public_properties(table.record) | marker, storage_options=dict(storage.options),
        managed_versioning=False,
    )  # fmt: skip
    if (request.with_table_uri if with_table_uri is None else with_table_uri) and table.record.location:
        response.table_uri = table_uri(table.record.location)
    wants_check = request.check_declared if check_declared is None else check_declared
    wants_detail = request.load_detailed_metadata if load_detailed_metadata is None else load_detailed_metadata
    if wants_detail is None and lancedb is not None:
        # lancedb's remote client sends version = null where it needs version and schema.
        wants_detail = "version" in request.model_fields_set
    is_pinned = any(pin is not None for pin in (request.version, request.tag, request.branch))
    if wants_check or (wants_detail and not is_pinned):
        state = table_detail.get_verification_state(pool, index, table)
        response.is_only_declared = state in listing.UNWRITTEN_STATES
        if wants_detail and not is_pinned and table_detail.is_empty_directory(table, state):
            raise InvalidTableState(
                f"{path_key(table.path)}: the directory is empty, which does not follow the Lance table format"
            )
    # Like the reference implementation: a table that is not written yet has no version.
    if is_pinned or (wants_detail and not response.is_only_declared):
        detail = table_detail.read_table_detail(
            pool, table, version=request.version, tag=request.tag, branch=request.branch,
            lance_types=lancedb is not None,
        )  # fmt: skip
        response.version, response.metadata = detail["version"], detail["metadata"]
        response.var_schema = JsonArrowSchema.model_validate(detail["schema"])
        response.stats = TableBasicStats.model_validate(detail["stats"])
        response.is_only_declared = False
    return json_response(response, storage.headers, with_secrets=storage.is_unmasked, vended=storage.vended)


@router.post("/table/{id}/declare")
def declare_table(
    id: TableId, write: WriterDep, vending: VendingDep, body: Annotated[DeclareTableRequest | None, Body()] = None  # noqa: A002
) -> Response:  # fmt: skip
    """Declare a table in its catalog, at the given location or one that the catalog chooses. No data is written."""
    request = body or DeclareTableRequest()
    table, result = declare_in_catalog(write, write.authorize(id.require_match(request.id), is_table=True), request)
    storage = vending.options_for(table, requested=request.vend_credentials)
    response = DeclareTableResponse(
        location=table.record.location, properties=public_properties(table.record), storage_options=dict(storage.options),
        managed_versioning=False,
    )  # fmt: skip
    headers = {**write_headers(result), **storage.headers}
    return json_response(response, headers, with_secrets=storage.is_unmasked, vended=storage.vended)


def declare_in_catalog(
    write: AuthorizedWriter, target: WriteTarget, client_request: DeclareTableRequest, *, schema: str | None = None,
    locked: bool = False,
) -> tuple[VisibleTable, WriteResult[DeclareTableResponse]]:  # fmt: skip
    """Declare a table in its catalog, journalled and published. The calling function writes its data afterwards.

    Return the table as the catalog has it now, and the write result, whose ``write_headers`` belong to the response. ``locked``: the
    calling function holds the table's lock. ``schema``: the columns of the data. Raise TableAlreadyExists, NamespaceNotFound,
    Unsupported or any other CatalogError.
    """
    request = client_request.model_copy(update={"id": list(target.source_path), "vend_credentials": False})
    result = write.execute(
        target,
        "declare_table",
        lambda facade: facade.declare_table(request, schema=schema),
        request=client_request,
        locked=locked,
    )
    record = _record_of(target, result.response)
    return VisibleTable(target.path, target.source, record), result


def _record_of(
    target: WriteTarget, response: DeclareTableResponse | RegisterTableResponse | DeregisterTableResponse
) -> TableRecord:
    """Return the record of a table after a write, as its catalog's facade returned it."""
    return TableRecord(target.source.name, target.source_path, response.location, dict(response.properties or {}))


def withdraw_declaration(write: AuthorizedWriter, target: WriteTarget) -> None:
    """Deregister a table whose data could not be written. The calling function holds the table's lock."""
    request = DeregisterTableRequest(id=list(target.source_path))
    write.execute(target, "deregister_table", lambda facade: facade.deregister_table(request), locked=True)


@router.post("/table/{id}/register")
def register_table(id: TableId, write: WriterDep, body: RegisterTableRequest) -> Response:  # noqa: A002
    """Declare a table at the location of existing data. Mode Overwrite replaces the declaration of that name, never data."""
    target = write.authorize(id.require_match(body.id), is_table=True)
    request = body.model_copy(update={"id": list(target.source_path)})
    result = write.execute(target, "register_table", lambda facade: facade.register_table(request), request=body)
    record = _record_of(target, result.response)
    return json_response(
        RegisterTableResponse(location=record.location, properties=public_properties(record)), write_headers(result)
    )


@router.post("/table/{id}/deregister")
def deregister_table(
    id: TableId, write: WriterDep, body: Annotated[DeregisterTableRequest | None, Body()] = None  # noqa: A002
) -> Response:  # fmt: skip
    """Remove a table from its catalog. Its data stays."""
    target = write.authorize_table(id, body.id if body else None)
    request = DeregisterTableRequest(id=list(target.source_path))
    result = write.execute(target, "deregister_table", lambda facade: facade.deregister_table(request))
    record = _record_of(target, result.response)
    response = DeregisterTableResponse(id=list(target.path), location=record.location, properties=public_properties(record))
    return json_response(response, write_headers(result))


@router.post("/table/{id}/rename")
def rename_table(id: TableId, write: WriterDep, body: RenameTableRequest) -> Response:  # noqa: A002
    """Rename a table in its catalog, within its source. Its location and data stay."""
    target = write.authorize(id.require_match(body.id), is_table=True)
    if not body.new_table_name:
        raise InvalidInput("new_table_name is empty")
    parents = tuple(body.new_namespace_id or target.path[:-1])
    new = write.authorize((*parents, body.new_table_name), is_table=True)
    if new.source.name != target.source.name:
        raise Unsupported(
            f"{path_key(target.path)} cannot be renamed to a table of {new.source.name}: both must be in one source",
            hint=f"declare it in {new.source.name}, then deregister it in {target.source.name}",
        )
    request = RenameTableRequest(
        id=list(target.source_path), new_table_name=new.path[-1], new_namespace_id=list(new.source_path[:-1])
    )
    result = write.execute(
        target,
        "rename_table",
        lambda facade: facade.rename_table(request),
        also=[AffectedObject(new.source_path)],
        request=body,
    )
    return json_response(RenameTableResponse(), write_headers(result))


@router.post("/table/{id}/drop")
def drop_table(id: TableId, write: WriterDep, pool: PoolDep) -> Response:  # noqa: A002
    """Deregister a table and delete its data. Needs the role admin, and ``allow_drop = true`` in the source."""
    target = write.authorize_table(id)
    record, result = drop_with_data(pool, write, target)
    response = DropTableResponse(id=list(target.path), location=record.location, properties=public_properties(record))
    return json_response(response, write_headers(result))
