"""Tables of the Lance protocol: read from the index, declared and removed through the catalog that owns them.

What lies in a table is ``table_data``'s; here is only what catalogs say, and what verification found at the location.
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

from federator.api.context import CallerOf, IndexOf, SettingsOf
from federator.api.lance import detail
from federator.api.lance.answers import Limit, PageToken, answered, page, wanted
from federator.api.lance.dropping import drop
from federator.api.lance.identifiers import DEFAULT_DELIMITER, Delimiter, NamespaceId, TableId, parse
from federator.api.lance.listings import child_tables
from federator.api.lance.pool import PoolOf
from federator.api.lance.resolving import (
    Table,
    resolve_table,
    shown_properties,
)
from federator.api.lance.writes import Target, Write, Writing, headers
from federator.connector import InvalidInput, Unsupported
from federator.connector.answers import table_uri
from federator.index import Index, listing
from federator.model import Path, TableRecord, parse_key, path_key
from federator.model.scopes import Scopes
from federator.settings import Settings
from federator.sync.writing import Touched, Written

router = APIRouter(prefix="/v1", include_in_schema=False)

IncludeDeclared = Annotated[
    bool | None, Query(description="false: without tables that verification found not to be written yet")
]
Flag = Annotated[bool | None, Query()]


@router.get("/namespace/{id}/table/list")
def list_tables(
    id: NamespaceId, index: IndexOf, settings: SettingsOf, caller: CallerOf,  # noqa: A002
    page_token: PageToken = None, limit: Limit = None, include_declared: IncludeDeclared = None,
) -> Response:  # fmt: skip
    """The names of a namespace's Lance tables; the root has none."""
    size, after = wanted(limit, page_token)
    names = child_tables(index, settings, caller.scopes, id.path, after=after, size=size, written=include_declared is False)
    shown, token = page(names, size)
    return answered(ListTablesResponse(tables=shown, page_token=token))


@router.get("/table")
def list_all_tables(
    index: IndexOf, settings: SettingsOf, caller: CallerOf, delimiter: Delimiter = DEFAULT_DELIMITER,
    page_token: PageToken = None, limit: Limit = None, include_declared: IncludeDeclared = None,
) -> Response:  # fmt: skip
    """Every table of every source, by its id: the names from the root, joined by the delimiter."""
    root = parse("", delimiter)
    size, after = wanted(limit, page_token)
    paths = _all(index, settings, caller.scopes, parse_key(after), size + 1, written=include_declared is False)
    _, token = page([path_key(path) for path in paths], size)
    return answered(ListTablesResponse(tables=[root.joined(path) for path in paths[:size]], page_token=token))


def _all(index: Index, settings: Settings, scopes: Scopes, after: Path, limit: int, *, written: bool) -> list[Path]:
    found: list[Path] = []
    with index.read() as connection:
        for source in sorted(name for name in settings.sources if scopes.shows((name,))):
            begun = after[1:] if after and after[0] == source else ()
            if len(found) >= limit or (after and source < after[0]):
                continue
            paths = listing.all_tables(
                connection, source, after=begun, limit=limit - len(found), scopes=scopes, written=written
            )
            found += [(source, *path) for path in paths]
    return found


@router.post("/table/{id}/exists")
def table_exists(
    id: TableId, index: IndexOf, settings: SettingsOf, caller: CallerOf, pool: PoolOf,  # noqa: A002
    body: Annotated[TableExistsRequest | None, Body()] = None,
) -> Response:  # fmt: skip
    """200 without a body, or 404; with a version, whether the table has it."""
    table = resolve_table(index, settings, caller.scopes, id.same(body.id if body else None))
    if body and body.version is not None:
        detail.of_table(pool, table, version=body.version)
    return Response()


@router.post("/table/{id}/describe")
def describe_table(
    id: TableId, index: IndexOf, settings: SettingsOf, caller: CallerOf, pool: PoolOf,  # noqa: A002
    body: Annotated[DescribeTableRequest | None, Body()] = None,
    with_table_uri: Flag = None, load_detailed_metadata: Flag = None, check_declared: Flag = None,
) -> Response:  # fmt: skip
    """What its catalog says; with ``load_detailed_metadata`` also version, schema and statistics, from the table itself."""
    asked = body or DescribeTableRequest()
    table = resolve_table(index, settings, caller.scopes, id.same(asked.id))
    found = DescribeTableResponse(
        table=table.path[-1], namespace=list(table.path[:-1]), location=table.record.location,
        properties=shown_properties(table.record),
        storage_options=table.shown_options(caller, vend_credentials=asked.vend_credentials),
    )  # fmt: skip
    if (asked.with_table_uri if with_table_uri is None else with_table_uri) and table.record.location:
        found.table_uri = table_uri(table.record.location)
    if asked.check_declared if check_declared is None else check_declared:
        found.is_only_declared = detail.is_only_declared(pool, index, table)
    detailed = asked.load_detailed_metadata if load_detailed_metadata is None else load_detailed_metadata
    pinned = any(pin is not None for pin in (asked.version, asked.tag, asked.branch))
    if detailed and not pinned and detail.is_only_declared(pool, index, table):
        # As the reference has it: what is not there yet has no version to tell of.
        found.is_only_declared = True
    elif detailed or pinned:
        told = detail.of_table(pool, table, version=asked.version, tag=asked.tag, branch=asked.branch)
        found = found.model_copy(
            update={
                "version": told["version"], "var_schema": JsonArrowSchema.model_validate(told["schema"]),
                "stats": TableBasicStats.model_validate(told["stats"]), "metadata": told["metadata"], "is_only_declared": False,
            }
        )  # fmt: skip
    return answered(found)


@router.post("/table/{id}/declare")
def declare_table(
    id: TableId, write: Writing, body: Annotated[DeclareTableRequest | None, Body()] = None  # noqa: A002
) -> Response:  # fmt: skip
    """Declared in its catalog, at a location that is given or the catalog's own choice; no data is written."""
    asked = body or DeclareTableRequest()
    return _declared(write, write.target(id.same(asked.id)), asked)


def _declared(write: Write, target: Target, asked: DeclareTableRequest) -> Response:
    table, made = declare(write, target, asked)
    answer = DeclareTableResponse(
        location=table.record.location, properties=shown_properties(table.record),
        storage_options=table.shown_options(write.caller, vend_credentials=asked.vend_credentials),
    )  # fmt: skip
    return answered(answer, headers(made))


def declare(
    write: Write, target: Target, asked: DeclareTableRequest, *, locked: bool = False
) -> tuple[Table, Written[DeclareTableResponse]]:
    """Declares a table in its catalog, journalled and published, for whoever then writes its data.

    Returns it as the catalog has it now (``location`` and ``storage_options()`` say where and how to write), and the write, whose
    ``headers`` belong into the answer. ``locked``: the caller holds the table's lock. Raises TableAlreadyExists,
    NamespaceNotFound, Unsupported and whatever else the catalog says.
    """
    request = asked.model_copy(update={"id": list(target.inner), "vend_credentials": False})
    made = write.carry_out(target, "declare_table", lambda face: face.declare_table(request), request=asked, locked=locked)
    record = TableRecord(target.source.name, target.inner, made.answer.location, dict(made.answer.properties or {}))
    return Table(target.path, target.source, record), made


@router.post("/table/{id}/register")
def register_table(id: TableId, write: Writing, body: RegisterTableRequest) -> Response:  # noqa: A002
    """Declared at a location where the table exists; mode Overwrite replaces the declaration of that name, never data."""
    target = write.target(id.same(body.id))
    request = body.model_copy(update={"id": list(target.inner)})
    made = write.carry_out(target, "register_table", lambda face: face.register_table(request), request=body)
    record = TableRecord(target.source.name, target.inner, made.answer.location, dict(made.answer.properties or {}))
    return answered(RegisterTableResponse(location=record.location, properties=shown_properties(record)), headers(made))


@router.post("/table/{id}/deregister")
def deregister_table(
    id: TableId, write: Writing, body: Annotated[DeregisterTableRequest | None, Body()] = None  # noqa: A002
) -> Response:  # fmt: skip
    """Taken out of its catalog; the data stays."""
    target = write.target(id.same(body.id if body else None))
    request = DeregisterTableRequest(id=list(target.inner))
    made = write.carry_out(target, "deregister_table", lambda face: face.deregister_table(request))
    record = TableRecord(target.source.name, target.inner, made.answer.location, dict(made.answer.properties or {}))
    answer = DeregisterTableResponse(id=list(target.path), location=record.location, properties=shown_properties(record))
    return answered(answer, headers(made))


@router.post("/table/{id}/rename")
def rename_table(id: TableId, write: Writing, body: RenameTableRequest) -> Response:  # noqa: A002
    """Renamed by its catalog, within its source; location and data stay."""
    target = write.target(id.same(body.id))
    if not body.new_table_name:
        raise InvalidInput("new_table_name is empty")
    above = tuple(body.new_namespace_id) if body.new_namespace_id is not None else target.path[:-1]
    new = write.target((*above, body.new_table_name))
    if new.source.name != target.source.name:
        raise Unsupported(
            f"{path_key(target.path)} cannot become a table of {new.source.name}: a table is renamed within its source",
            hint="declare it there, then deregister it here",
        )
    request = RenameTableRequest(id=list(target.inner), new_table_name=new.path[-1], new_namespace_id=list(new.inner[:-1]))
    made = write.carry_out(
        target, "rename_table", lambda face: face.rename_table(request), also=[Touched(new.inner)], request=body
    )
    return answered(RenameTableResponse(), headers(made))


@router.post("/table/{id}/drop")
def drop_table(id: TableId, write: Writing, pool: PoolOf) -> Response:  # noqa: A002
    """Deregistered, and its data deleted: only for a source with ``allow_drop = true``, by an admin."""
    target = write.target(id.path)
    record, made = drop(pool, write, target)
    answer = DropTableResponse(id=list(target.path), location=record.location, properties=shown_properties(record))
    return answered(answer, headers(made))
