"""DropTable: the only operation that deletes data, with its preconditions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from federator.api.lance.lookup import VisibleTable
from federator.api.lance.table_detail import table_handle
from federator.api.lance.write_access import AuthorizedWriter, WriteTarget
from federator.api.principals import Role, can_drop_data
from federator.apply.direct_writes import WriteResult
from federator.connector import CatalogError, Internal, InvalidInput, TableNotFound, Unsupported
from federator.data import PrincipalPool, TableHandle, run_inspection
from federator.model import Kind, TableRecord, canonical_location, parse_path_key, path_key
from federator.views import datasets

if TYPE_CHECKING:
    from federator.lance.facade import CatalogNamespace


def drop_with_data(
    pool: PrincipalPool, write: AuthorizedWriter, target: WriteTarget
) -> tuple[TableRecord, WriteResult[TableRecord]]:
    """Deregister a table, delete its data and return its record.

    The source needs ``allow_drop = true``, and the principal needs the role admin for it. Nothing is removed if another declaration has
    the same location or one inside it, or if the location is part of another table. The location must be empty, or contain a Lance
    table and nothing else.

    Raise Unsupported, PermissionDenied or InvalidInput if a precondition fails. Raise Internal if the table was deregistered, but its
    data could not be deleted.
    """
    name = path_key(target.path)
    if not target.source.allow_drop:
        raise Unsupported(
            f"{name}: data of tables of {target.source.name} is never deleted",
            hint=f"use DeregisterTable, or set allow_drop = true in [sources.{target.source.name}]",
        )
    if not can_drop_data(write.principal, target.source, target.path):
        write.principal.require(Role.ADMIN, target.path)

    def call(facade: CatalogNamespace) -> TableRecord:
        with facade.borrow_catalog() as catalog:
            record = catalog.describe_table(target.source_path)
            if record.kind is not Kind.TABLE or not record.location:
                raise InvalidInput(f"{name} is not an external Lance table with a location")
            handle = table_handle(VisibleTable(target.path, target.source, record))
            resolved = _require_sole_declaration(pool, write, target, handle)
            _require_no_branch(pool, handle, resolved, name)
            has_data = _is_written(pool, handle, name)
            catalog.deregister_table(record)
        if has_data:
            _delete_data(pool, handle, resolved, name)
        return record

    result = write.execute(target, "drop_table", call)
    return result.response, result


def _require_sole_declaration(pool: PrincipalPool, write: AuthorizedWriter, target: WriteTarget, handle: TableHandle) -> str:
    """Return the location with symbolic links resolved, the only one that may be deleted.

    Raise InvalidInput if another declared table would lose its data, also one that is reached through symbolic links.
    """
    aliases, own_id = write.settings.location_aliases, path_key(target.path)
    others = datasets.list_tables_that_may_overlap(write.index, handle.location, aliases)
    others.pop(own_id, None)
    canonical = canonical_location(handle.location, aliases)
    overlap = pool.run("lost_tables", handle, canonical=canonical, declared=sorted(set(others.values())))
    lost, resolved = set(overlap["locations"]), str(overlap["resolved"])
    names = sorted(name for name, location in others.items() if location in lost)
    if names:
        # Name only objects that the principal can see.
        visible = [name for name in names if write.principal.scopes.covers(parse_path_key(name))]
        other = ", ".join(visible) or "another table"
        raise InvalidInput(f"{own_id}: {other} has data at {handle.location}", hint="use DeregisterTable, which keeps the data")
    return resolved


def _require_no_branch(pool: PrincipalPool, handle: TableHandle, resolved: str, name: str) -> None:
    """Raise InvalidInput if the location is a branch of another table. That table may be in no catalog, so the index cannot show it."""
    for match in re.finditer("/tree/", resolved):
        table = replace(handle, location=resolved[: match.start()])
        if run_inspection(pool.run, table, allow_outside=True).state not in ("missing", "empty", "not_lance"):
            raise InvalidInput(
                f"{name}: {handle.location} is part of another table, and is not deleted",
                hint="use DeregisterTable, which keeps the data",
            )


def _is_written(pool: PrincipalPool, handle: TableHandle, name: str) -> bool:
    """Whether the location contains a Lance table; False if nothing was written. Raise InvalidInput for any other content."""
    inspection = run_inspection(pool.run, handle, allow_outside=True)
    if inspection.state in ("missing", "empty", "declared_only"):
        return False
    if inspection.state != "valid":
        raise InvalidInput(
            f"{name}: the content of {handle.location} is {inspection.state} and is not deleted: {inspection.message}",
            hint="use DeregisterTable, which keeps the data",
        )
    foreign_names = pool.run("foreign_files", handle)["names"]
    if foreign_names:
        more = f" and {len(foreign_names) - 3} more" if len(foreign_names) > 3 else ""
        raise InvalidInput(
            f"{name}: {', '.join(foreign_names[:3])}{more} in {handle.location} does not belong to the table and would be deleted too",
            hint="move it elsewhere first, or use DeregisterTable, which keeps the data",
        )
    return True


def _delete_data(pool: PrincipalPool, handle: TableHandle, resolved: str, name: str) -> None:
    try:
        pool.run("drop", handle, resolved=resolved)
    except TableNotFound:
        return
    except CatalogError as error:
        raise Internal(
            f"{name} was deregistered, but its data at {handle.location} was not deleted: {error.message}"
        ) from error
