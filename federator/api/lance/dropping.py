"""DropTable: the one operation that deletes data, and everything that has to be so before it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from federator.api.access import Caller, Role, may_drop
from federator.api.lance.detail import place_of
from federator.api.lance.resolving import Table
from federator.api.lance.writes import Target, Write
from federator.connector import CatalogError, Internal, InvalidInput, TableNotFound, Unsupported
from federator.data import DataPool, Place
from federator.index import Index, datasets
from federator.model import Kind, TableRecord, parse_key, path_key
from federator.settings import Settings
from federator.sync.writing import Written

if TYPE_CHECKING:
    from federator.connector.namespace import CatalogNamespace


def drop(pool: DataPool, write: Write, target: Target) -> tuple[TableRecord, Written[TableRecord]]:
    """Deregisters a table and deletes its data; returns what it was.

    The source must say ``allow_drop = true`` and the caller be its admin. Nothing is removed where another declaration points to the
    same place or to one inside it, where the place is neither empty nor a Lance table, or where it has more in it than the table.

    Raises Unsupported, PermissionDenied, InvalidInput, and Internal where the table was deregistered and its data is still there.
    """
    name = path_key(target.path)
    if not target.source.allow_drop:
        raise Unsupported(
            f"{name}: tables of {target.source.name} are deregistered, and their data is never deleted",
            hint=f"DeregisterTable; or allow_drop = true in [sources.{target.source.name}]",
        )
    if not may_drop(write.caller, target.source, target.path):
        write.caller.require(Role.ADMIN, target.path)

    def call(face: CatalogNamespace) -> TableRecord:
        with face.lent() as catalog:
            record = catalog.describe_table(target.inner)
            if record.kind is not Kind.TABLE or not record.location:
                raise InvalidInput(f"{name} is no external Lance table with a location")
            _alone(write.index, write.settings, write.caller, target, record)
            place = place_of(Table(target.path, target.source, record))
            written = _written(pool, place, name)
            catalog.deregister_table(record)
        if written:
            _delete(pool, place, name)
        return record

    made = write.carry_out(target, "drop_table", call)
    return made.answer, made


def _alone(index: Index, settings: Settings, caller: Caller, target: Target, record: TableRecord) -> None:
    """Raises InvalidInput where somebody else's table would lose its data."""
    try:
        found = datasets.get(index, str(record.location), settings.aliases)
    except TableNotFound:
        return
    own = path_key(target.path)
    names = [each.id for each in found.declarations if each.id != own]
    if names or found.holds:
        # The names only of what the caller may see.
        shown = [name for name in names if caller.scopes.covers(parse_key(name))]
        what = ", ".join(shown) or "another table"
        raise InvalidInput(
            f"{own}: {what} {'points to' if names else 'lies inside'} {record.location}", hint="DeregisterTable leaves the data"
        )


def _written(pool: DataPool, place: Place, name: str) -> bool:
    """Whether there is a Lance table; False where nothing has been written. Raises InvalidInput for anything else."""
    seen = pool.run("look", place)
    if seen["state"] in ("missing", "empty", "declared_only"):
        return False
    if seen["state"] != "valid":
        raise InvalidInput(
            f"{name}: what lies at {place.location} is {seen['state']}, and is not deleted: {seen['message']}",
            hint="DeregisterTable leaves it as it is",
        )
    inside = pool.run("strangers", place)["names"]
    if inside:
        more = f" and {len(inside) - 3} more" if len(inside) > 3 else ""
        raise InvalidInput(
            f"{name}: {', '.join(inside[:3])}{more} in {place.location} is not this table's, and would be deleted with it",
            hint="move it elsewhere first; DeregisterTable leaves the data",
        )
    return True


def _delete(pool: DataPool, place: Place, name: str) -> None:
    try:
        pool.run("drop", place)
    except TableNotFound:
        return
    except CatalogError as error:
        raise Internal(f"{name} was deregistered, and its data at {place.location} was not deleted: {error.message}") from error
