"""The merged tree: one entry for all objects of one logical path, over all sources.

The logical path is the source's path without the leading levels that only name a catalog (docs/adr/0008). An entry lists its
declarations as ``homes``, but only those that the scopes cover. So a conflict with an invisible object is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, RowMapping, Select, select, union_all

from federator.connector import NamespaceNotFound
from federator.model import Path, object_id, parse_path_key, path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.runtime.text import format_utc
from federator.store import records, sql, verifications, visibility
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.snapshots import Snapshot, read_transaction_at
from federator.store.sql import chunked
from federator.store.verifications import SourceLocation
from federator.views import verification_history

# The most branches of one query. SQLite allows 500 parts of a compound select, and each branch has two.
_MAX_BRANCHES = 50

r = t.record.c


@dataclass(frozen=True, slots=True)
class MergedDeclaration:
    """A declaration behind an entry of the merged tree."""

    id: Annotated[str, Field(examples=["lake_hive$hive$sales$orders"], description="object id of the declaration")]
    source: Annotated[str, Field(examples=["lake_hive"])]
    kind: Annotated[str, Field(examples=["table"])]
    location: Annotated[str | None, Field(examples=["s3://lake/sales/orders.lance"])]
    verified: Annotated[str | None, Field(examples=["valid"])]


@dataclass(frozen=True, slots=True)
class MergedEntry:
    """An entry of the merged tree: all objects with one logical path."""

    id: Annotated[str, Field(examples=["sales$orders"], description="logical path key")]
    name: Annotated[str, Field(examples=["orders"])]
    kind: Annotated[str, Field(examples=["table"])]
    homes: Annotated[list[MergedDeclaration], Field(description="all declarations of this entry, the default first")]
    default: Annotated[
        str,
        Field(
            examples=["lake_hive$hive$sales$orders"],
            description="object id of the declaration that an operation on this entry uses",
        ),
    ]
    conflict: Annotated[bool, Field(examples=[False], description="true: its tables are at different locations")]


@dataclass(frozen=True, slots=True)
class MergedPage:
    """One page of entries by name, and the cursor of the next page; None on the last page."""

    nodes: list[MergedEntry]
    next: str | None


@dataclass(frozen=True, slots=True)
class _Branch:
    """One namespace of one source whose children belong to the listing. ``tables``: only its tables, not its namespaces."""

    source: str
    revision: int
    parent: Path
    tables: bool = False


def list_merged_children(
    index: Index, skipped: Mapping[str, int], path: Path = (), *, after: str = "", limit: int = 200,
    snapshot: Snapshot | None = None, scopes: Scopes = EVERYTHING,
) -> MergedPage:  # fmt: skip
    """List the entries below a path of the merged tree, by name. A namespace and a table with one name are two entries, on one page.

    ``skipped`` is the number of leading levels to leave out by source, in the order of priority. A source that is not in it keeps all
    levels and comes last. ``snapshot`` selects a past state. Raise NamespaceNotFound if no source has such a namespace, HistoryExpired
    if the history is not kept.
    """
    with index.read() if snapshot is None else read_transaction_at(index, snapshot) as connection:
        revisions = _visible_revisions(connection, scopes, snapshot)
        order = {name: number for number, name in enumerate(dict.fromkeys([*skipped, *revisions]))}
        branches = [
            branch
            for name, revision in revisions.items()
            for branch in _find_branches(connection, scopes, name, revision, path, skipped.get(name, 0))
        ]
        if path and not branches:
            subject = "no source has" if snapshot is None else f"at {format_utc(snapshot.at)} no source had"
            raise NamespaceNotFound(
                f"{subject} a namespace {path_key(path)}", hint="federator tree --view merged shows the namespaces"
            )
        # Twice as many rows, because each name may belong to a namespace and to a table.
        rows = _fetch_rows(connection, scopes, branches, after, 2 * (limit + 1))
        names = list(dict.fromkeys(row["name"] for row in rows))
        page_names = set(names[:limit])
        page_rows = [row for row in rows if row["name"] in page_names]
        canonicals = [row["canonical"] for row in page_rows if row["canonical"]]
        declared = [(row["source"], row["canonical"]) for row in page_rows if row["canonical"]]
        verified = _verification_states(connection, declared, snapshot)
        alias_targets = _alias_targets(connection, canonicals)
    groups = groupby(page_rows, key=lambda row: (row["name"], row["is_table"]))
    nodes = [_build_node(path, list(group), order, verified, alias_targets) for _, group in groups]
    return MergedPage(nodes, names[limit - 1] if len(names) > limit else None)


def _visible_revisions(connection: Connection, scopes: Scopes, snapshot: Snapshot | None) -> dict[str, int]:
    """Return the revisions of the sources that are visible in the scopes, at least in part, by name."""
    if snapshot is not None:
        return {name: number for name, number in sorted(snapshot.revisions.items()) if number and scopes.is_visible((name,))}
    query = select(t.source.c.name, t.source.c.revision).where(visibility.is_visible_source(scopes, t.source.c.name))
    return dict(connection.execute(query.order_by(t.source.c.name)).tuples().all())


def _verification_states(
    connection: Connection, declared: list[SourceLocation], snapshot: Snapshot | None
) -> dict[SourceLocation, str]:
    """Return the verification states of some locations of sources, now or at a snapshot."""
    if snapshot is not None:
        past = verification_history.list_states_at(connection, declared, snapshot.at)
        return {location: found.state for location, found in past.items()}
    return {location: found.state for location, found in verifications.list_verifications(connection, declared).items()}


def _find_branches(
    connection: Connection, scopes: Scopes, source: str, revision: int, path: Path, skipped: int
) -> Iterator[_Branch]:
    """Yield the namespaces of a source that have a path of the merged tree."""
    tops: list[Path] = [()]
    for _ in range(skipped):
        if not path:
            # Tables in the levels that are left out are shown at the root of the merged tree.
            yield from (_Branch(source, revision, top, tables=True) for top in tops)
        tops = [
            parse_path_key(row["path"])
            for top in tops
            for row in _execute(connection, _select_children(connection, scopes, _Branch(source, revision, top), is_table=0))
        ]
    for top in tops:
        if not path or _namespace_exists(connection, scopes, source, revision, (*top, *path)):
            yield _Branch(source, revision, (*top, *path))


def _namespace_exists(connection: Connection, scopes: Scopes, source: str, revision: int, path: Path) -> bool:
    visible = visibility.is_visible(connection, scopes, r.source, r.path, r.is_table)
    query = records.select_at_revision(source, revision, r.is_table == 0, r.path == path_key(path), visible, columns=[r.path])
    return connection.execute(query.limit(1)).first() is not None


def _select_children(
    connection: Connection, scopes: Scopes, branch: _Branch, *, is_table: int | None = None, after: str = ""
) -> Select[Any]:
    visible = visibility.is_visible(connection, scopes, r.source, r.path, r.is_table)
    conditions = [r.parent == path_key(branch.parent), r.path != "", sql.byte_ordered(connection, r.name) > after, visible]
    if is_table is not None:
        conditions.append(r.is_table == is_table)
    columns = [r.source, r.path, r.name, r.is_table, r.kind, r.location, r.canonical]
    return records.select_at_revision(branch.source, branch.revision, *conditions, columns=columns)


def _fetch_rows(connection: Connection, scopes: Scopes, branches: list[_Branch], after: str, limit: int) -> list[RowMapping]:
    """Return the first ``limit`` rows of every branch, sorted by name."""
    rows: list[RowMapping] = []
    for chunk in chunked(branches, _MAX_BRANCHES):
        parts = []
        for branch in chunk:
            state = _select_children(connection, scopes, branch, is_table=1 if branch.tables else None, after=after).subquery()
            name = sql.byte_ordered(connection, state.c.name)
            parts.append(select(select(state).order_by(name, state.c.is_table).limit(limit).subquery()))
        rows += connection.execute(union_all(*parts)).mappings()
    return sorted(rows, key=lambda row: (row["name"], row["is_table"]))


def _execute(connection: Connection, query: Select[Any]) -> list[RowMapping]:
    return list(connection.execute(query).mappings())


def _alias_targets(connection: Connection, canonicals: list[str]) -> dict[str, str]:
    """Return the locations that location aliases among ``canonicals`` stand for, by alias."""
    targets: dict[str, str] = {}
    for chunk in chunked(canonicals):
        aliased = t.alias.c.canonical.in_(chunk)
        targets |= dict(connection.execute(select(t.alias.c.canonical, t.alias.c.place).where(aliased)).tuples().all())
    return targets


def _build_node(
    path: Path,
    rows: list[RowMapping],
    order: Mapping[str, int],
    verified: Mapping[SourceLocation, str],
    alias_targets: Mapping[str, str],
) -> MergedEntry:
    rows = sorted(rows, key=lambda row: (order[row["source"]], row["path"]))
    homes = [_build_declaration(row, verified) for row in rows]
    locations = {alias_targets.get(row["canonical"], row["canonical"]) for row in rows if row["canonical"]}
    name, is_table = rows[0]["name"], bool(rows[0]["is_table"])
    return MergedEntry(
        id=path_key((*path, name)),
        name=name,
        kind=rows[0]["kind"] if is_table else "namespace",
        homes=homes,
        default=homes[0].id,
        conflict=is_table and len(locations) > 1,
    )


def _build_declaration(row: RowMapping, verified: Mapping[SourceLocation, str]) -> MergedDeclaration:
    key = object_id(row["source"], row["path"])
    return MergedDeclaration(
        key, row["source"], row["kind"], row["location"], verified.get((row["source"], row["canonical"] or ""))
    )
