"""The tree, tables and datasets of a snapshot.

Facts without a history are left out instead of shown as of today: freshness, ledger entries, and verification results except the state
and the schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, exists, select, union, union_all

from federator.connector import NamespaceNotFound, TableNotFound
from federator.model import Coverage, Kind, LocationAliases, Path, canonical_location, object_id, parse_path_key, path_key
from federator.model.rows import table_from_row
from federator.model.scopes import EVERYTHING, Scopes
from federator.planning.comparison import Disagreement, find_disagreements
from federator.runtime.text import format_utc
from federator.store import coverage, records, visibility
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.field_types import OptionalTimestamp, Timestamp
from federator.store.snapshots import Snapshot, read_transaction_at
from federator.store.sql import MAX_BIND_VALUES, chunked, unindexed
from federator.store.stores import list_sharing, read_stores, value_at
from federator.store.verifications import SourceLocation, rank_state
from federator.views import verification_history
from federator.views.datasets import DISAGREEMENTS, NO_FILTER, DatasetFilter, Declaration, cut_page, list_sources
from federator.views.tree import NodePage, TableDeclaration, TreeNode, declaration_fields
from federator.views.verification_history import PastVerification

r = t.record.c


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTable(TableDeclaration):
    """A declaration at a past time."""

    at: Timestamp
    revision: int
    dataset: Annotated[
        PastVerification | None,
        Field(description="null: the location was not verified until then, or its history is no longer kept"),
    ]


@dataclass(frozen=True, slots=True)
class PastDataset:
    """A dataset with its declarations and its verification state at a past time."""

    location: Annotated[str, Field(examples=["s3://lake/sales/orders.lance"])]
    state: Annotated[
        str | None,
        Field(examples=["valid"], description="unverified: not verified until then; null: its history is no longer kept"),
    ]
    message: str | None
    since: Annotated[OptionalTimestamp, Field(description="when verification first found this state")]
    schema: Annotated[Any, Field(description="the Lance schema")]
    declarations: list[Declaration]
    disagreements: Annotated[list[Disagreement], Field(description=DISAGREEMENTS)]
    duplicates: Annotated[
        list[str], Field(description="declarations of sources that declared the location under more than one name")
    ]


@dataclass(frozen=True, slots=True)
class PastDatasetPage:
    """One page of datasets by location, and the cursor of the next page; None on the last page."""

    datasets: list[PastDataset]
    next: str | None


def list_children_at(
    index: Index, node: Path, snapshot: Snapshot, *, after: str = "", limit: int = 1000, scopes: Scopes = EVERYTHING
) -> NodePage:
    """List the children of a node, by path. ``after`` is the cursor of the previous page.

    Raise NamespaceNotFound if the node did not exist or is not visible, HistoryExpired if the history is not kept.
    """
    with read_transaction_at(index, snapshot) as connection:
        if not node:
            return _list_sources_at(snapshot, after, limit, scopes)
        source, path = node[0], node[1:]
        revision = snapshot.revision_of(source)
        hidden = not revision or not scopes.is_visible(node)
        if hidden or (path and records.find_record(connection, source, path, is_table=False, revision=revision) is None):
            raise NamespaceNotFound(f"the namespace {path_key(node)} did not exist at {format_utc(snapshot.at)}")
        visible = visibility.is_visible(connection, scopes, r.source, r.path, r.is_table)
        conditions = (r.parent == path_key(path), r.path > after, r.path != "", visible)
        state = records.select_at_revision(source, revision, *conditions).subquery()
        query = select(state).order_by(state.c.path, state.c.is_table).limit(limit + 2)
        rows = list(connection.execute(query).mappings())
        listed = coverage.read_coverage(connection, source, revision, only=[row["path"] for row in rows if not row["is_table"]])
        states = verification_history.list_states_at(
            connection, [(source, row["canonical"]) for row in rows if row["canonical"]], snapshot.at
        )
    # A namespace and a table may have the same path, and a cursor is only a path. So a page never ends between the two.
    end = limit + 1 if len(rows) > limit and rows[limit]["path"] == rows[limit - 1]["path"] else limit
    nodes = [_build_node(source, row, listed, states, scopes) for row in rows[:end]]
    return NodePage(nodes, rows[end - 1]["path"] if len(rows) > end else None)


def get_table_at(index: Index, node: Path, snapshot: Snapshot, *, scopes: Scopes = EVERYTHING) -> PastTable:
    """Return one table. Raise TableNotFound if it did not exist or is not covered, HistoryExpired if the history is not kept."""
    source, path = (node[0], node[1:]) if node else ("", ())
    with read_transaction_at(index, snapshot) as connection:
        covered = path and scopes.covers(node)
        record = (
            records.find_record(connection, source, path, is_table=True, revision=snapshot.revision_of(source))
            if covered
            else None
        )
        if record is None:
            raise TableNotFound(f"the table {path_key(node)} did not exist at {format_utc(snapshot.at)}")
        canonical = record.canonical
        declarations: list[RowMapping] = []
        state = None
        if canonical:
            sharing = list_sharing(connection, source, canonical, snapshot.revisions)
            declared = _list_declarations_at(connection, snapshot, [canonical], scopes)
            declarations = [row for row in declared if row["source"] in sharing]
            own = (source, canonical)
            state = verification_history.list_states_at(connection, [own], snapshot.at).get(own)
    return PastTable(
        **declaration_fields(node, record, [object_id(row["source"], row["path"]) for row in declarations]),
        at=snapshot.at,
        revision=snapshot.revision_of(source),
        dataset=state,
    )


def list_datasets_at(
    index: Index, snapshot: Snapshot, filters: DatasetFilter = NO_FILTER, *, after: str = "", limit: int = 200,
    scopes: Scopes = EVERYTHING,
) -> PastDatasetPage:  # fmt: skip
    """List the datasets of a snapshot by location. Raise HistoryExpired if the history is not kept."""
    is_filtered = filters.compares_declarations or filters.state is not None
    datasets: list[PastDataset] = []
    with read_transaction_at(index, snapshot) as connection:
        while len(datasets) <= limit:
            size = MAX_BIND_VALUES if is_filtered else limit + 1
            locations = _list_locations_at(connection, snapshot, filters.declared_in, after, size, scopes)
            if not locations:
                break
            datasets += [
                dataset
                for dataset in _build_datasets(connection, snapshot, locations, scopes)
                if filters.matches(
                    dataset.state, len(dataset.declarations), has_conflict=bool(dataset.disagreements or dataset.duplicates)
                )
            ]
            after = locations[-1]
    page, following = cut_page(datasets, limit)
    return PastDatasetPage(page, following)


def get_dataset_at(
    index: Index, location: str, aliases: LocationAliases, snapshot: Snapshot, *, declared_in: str | None = None,
    scopes: Scopes = EVERYTHING,
) -> PastDataset:  # fmt: skip
    """Return the dataset at a location, in any spelling. ``declared_in``: see ``views.datasets.get_dataset``.

    Raise TableNotFound if nothing declared it then, HistoryExpired if the history is not kept.
    """
    canonical = canonical_location(location, aliases)
    with read_transaction_at(index, snapshot) as connection:
        datasets = _build_datasets(connection, snapshot, [canonical], scopes)
    if declared_in is not None:
        datasets = [dataset for dataset in datasets if declared_in in list_sources(dataset.declarations)]
    if not datasets:
        raise TableNotFound(f"no table was declared at {canonical} at {format_utc(snapshot.at)}")
    return datasets[0]


def _list_sources_at(snapshot: Snapshot, after: str, limit: int, scopes: Scopes) -> NodePage:
    names = [name for name in sorted(snapshot.revisions) if name > after and scopes.is_visible((name,))]
    return NodePage(
        [TreeNode(name, name, "source") for name in names[:limit]], names[limit - 1] if len(names) > limit else None
    )


def _build_node(
    source: str, row: RowMapping, listed: Mapping[str, Coverage], states: Mapping[SourceLocation, PastVerification], scopes: Scopes
) -> TreeNode:  # fmt: skip
    path = (source, *parse_path_key(row["path"]))
    if not scopes.covers(path):
        return TreeNode(path_key(path), row["name"], Kind(row["kind"]).value)
    own_coverage = listed.get(row["path"]) if not row["is_table"] else None
    evidence = own_coverage.weakest if own_coverage is not None else None
    verification = states.get((source, row["canonical"]))
    return TreeNode(
        path_key(path), row["name"], Kind(row["kind"]).value, row["location"], evidence.state.value if evidence else None,
        verification.state if verification else None, row["problem"] or (evidence and evidence.reason) or None,
    )  # fmt: skip


def _select_tables_at(
    snapshot: Snapshot, source: str, columns: Sequence[Any], *conditions: ColumnElement[bool]
) -> list[Select[Any]]:
    """Return two selects of a source's tables at a snapshot: rows that are still open, and rows that were closed since."""
    revision = snapshot.revision_of(source)
    base = select(*columns).where(and_(r.source == source, unindexed(r.valid_from) <= revision, r.is_table == 1, *conditions))
    return [base.where(r.valid_to.is_(None)), base.where(r.valid_to > revision)]


def _list_locations_at(
    connection: Connection, snapshot: Snapshot, declared_in: str | None, after: str, limit: int, scopes: Scopes
) -> list[str]:
    """List declared canonical locations in order. Each branch reads an index in order, or the rows that were closed since."""
    own, alias = r.canonical, t.alias.c.place
    covered = visibility.is_covered(connection, scopes, r.source, r.path)
    branches: list[Select[Any]] = []
    for source in sorted(snapshot.revisions):
        if declared_in in (None, source) and scopes.is_visible((source,)):
            branches += _select_tables_at(
                snapshot, source, [own.label("location")], covered, own > after, ~exists().where(t.alias.c.canonical == own)
            )
            branches += _select_tables_at(
                snapshot, source, [alias.label("location")], covered, alias > after, t.alias.c.canonical == own
            )
    if not branches:
        return []
    limited = [query.distinct().order_by("location").limit(limit).subquery() for query in branches]
    locations = union(*(select(branch.c.location) for branch in limited)).subquery()
    return list(connection.execute(select(locations.c.location).order_by(locations.c.location).limit(limit)).scalars())


def _list_declarations_at(
    connection: Connection, snapshot: Snapshot, canonicals: Sequence[str], scopes: Scopes
) -> list[RowMapping]:
    """List the declarations at some canonical locations that the scopes cover, by source and path."""
    covered = visibility.is_covered(connection, scopes, r.source, r.path)
    rows: list[RowMapping] = []
    for chunk in chunked(canonicals):
        conditions = (r.canonical.in_(chunk), covered)
        queries = [
            query
            for source in sorted(snapshot.revisions)
            for query in _select_tables_at(snapshot, source, [t.record], *conditions)
        ]
        if queries:
            rows += connection.execute(union_all(*queries)).mappings()
    return sorted(rows, key=lambda row: (row["source"], row["path"]))


def _build_datasets(connection: Connection, snapshot: Snapshot, locations: Sequence[str], scopes: Scopes) -> list[PastDataset]:
    a = t.alias.c
    aliased = set(connection.execute(select(a.canonical).where(a.canonical.in_(locations))).scalars())
    aliases = connection.execute(select(a.canonical, a.place).where(a.place.in_(locations)))
    own = {location: location for location in locations if location not in aliased}
    resolved = own | {row.canonical: row.place for row in aliases}
    stores = read_stores(connection)
    declared: dict[str, dict[str, list[RowMapping]]] = {location: {} for location in locations}
    for row in _list_declarations_at(connection, snapshot, list(resolved), scopes):
        store = value_at(stores, row["source"], row["canonical"])
        declared[resolved[row["canonical"]]].setdefault(store, []).append(row)
    states = verification_history.list_states_at(
        connection,
        {(row["source"], row["canonical"]) for stored in declared.values() for rows in stored.values() for row in rows},
        snapshot.at,
    )
    default = verification_history.default_state_at(connection, snapshot.at)
    return [_build_dataset(location, rows, states, default) for location in locations for rows in declared[location].values()]


def _build_dataset(
    location: str, rows: list[RowMapping], states: Mapping[SourceLocation, PastVerification], default_state: str | None
) -> PastDataset:
    tables = [table_from_row(row["source"], dict(row)) for row in rows]
    ids = [path_key((table.source, *table.path)) for table in tables]
    sources = [table.source for table in tables]
    # A dataset may have been inspected under each of its aliases, and with the options of each source.
    keys = {(row["source"], row["canonical"]) for row in rows}
    inspected = [states[key] for key in keys if key in states]
    newest = max(inspected, key=lambda state: rank_state(state.state, state.since), default=None)
    return PastDataset(
        location=location,
        state=newest.state if newest else default_state,
        message=newest.message if newest else None,
        since=newest.since if newest else None,
        schema=newest.schema if newest else None,
        declarations=[
            Declaration(name, table.kind.value, str(table.location)) for name, table in zip(ids, tables, strict=True)
        ],
        disagreements=find_disagreements(tables),
        duplicates=[name for name, source in zip(ids, sources, strict=True) if sources.count(source) > 1],
    )
