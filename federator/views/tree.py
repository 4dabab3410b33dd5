"""The tree over all sources, for the CLI and the API.

The children of the tree root are the sources; below each source are its own levels. An object id starts with the source's name:
``lake_hive$sales$orders``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field
from sqlalchemy import Connection, RowMapping, Select, Text, bindparam, select

from federator.connector import NamespaceNotFound, TableNotFound
from federator.connector.options import MASKED, mask_secrets
from federator.model import Coverage, Path, TableRecord, object_id, parse_path_key, path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.store import coverage, records, search_entries, stores, verifications, visibility
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.field_types import OptionalTimestamp, Timestamp
from federator.store.records import ChildEntry, IndexedRecord
from federator.store.sql import cache_statement
from federator.store.verifications import Verification
from federator.views import datasets, freshness
from federator.views.freshness import Freshness, visible_state
from federator.views.positions import parse_position


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """What verification found at a table's location."""

    rows: Annotated[int | None, Field(examples=[12_345])]
    size: Annotated[int | None, Field(examples=[1_048_576], description="in bytes")]
    written_at: Annotated[OptionalTimestamp, Field(description="time of the newest version")]
    checked_at: Annotated[Timestamp, Field(description="time of the last verification")]


#: tables below a namespace are counted up to this number
MAX_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of the tree: a source, a namespace or a table."""

    __pydantic_config__ = ConfigDict(json_schema_serialization_defaults_required=True)

    id: Annotated[
        str,
        Field(examples=["lake_hive$sales$orders"], description="object id: the path key that starts with the source's name"),
    ]
    name: Annotated[str, Field(examples=["orders"])]
    kind: Annotated[str, Field(examples=["table"], description="source, namespace, table, managed_table or undescribed")]
    location: Annotated[str | None, Field(examples=["s3://lake/sales/orders.lance"])] = None
    coverage: Annotated[
        str | None,
        Field(examples=[None], description="state of the last listing of a namespace: complete, carried, failed or skipped"),
    ] = None
    verified: Annotated[str | None, Field(examples=["valid"], description="verification state of a table's location")] = None
    message: str | None = None
    stored: Annotated[
        StoredFacts | None,
        Field(
            description="what verification found, in the search and with `with=verified`; null: a namespace, or not verified"
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source with its freshness. Times are seconds since the epoch.

    ``carried`` counts the namespaces that the last crawl did not read, because the change feed did not name them. ``full_at`` is the
    time of the last full crawl.
    """

    name: str
    impl: str
    state: str
    message: str | None
    revision: int
    namespaces: int
    tables: int
    failed_namespaces: int
    crawled_at: float | None
    published_at: float | None
    carried: int = 0
    full_at: float | None = None


@dataclass(frozen=True, slots=True)
class MirrorLink:
    """A declaration that a mirror created from this table, or this table as a mirror created it."""

    mirror: str
    origin: str
    target: str
    run_id: str
    updated_at: Timestamp

    @classmethod
    def from_row(cls, row: RowMapping) -> Self:
        """Build the link from a row of the ledger."""
        origin, target = (object_id(row[f"{end}_source"], row[f"{end}_path"]) for end in ("origin", "target"))
        return cls(row["mirror"], origin, target, row["run_id"], row["updated_at"])


@dataclass(frozen=True, slots=True)
class TableVerification:
    """The verification result of the table's location."""

    canonical: str
    state: Annotated[str, Field(examples=["valid"])]
    message: str | None
    version: int | None
    rows: int | None
    fragments: int | None
    checked_at: Timestamp
    checked_through: Annotated[str | None, Field(description=datasets.CHECKED_THROUGH)]
    schema: Annotated[Any, Field(description="the Lance schema")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDeclaration:
    """A declaration, and the object ids of the other declarations of its location. `since_revision` is the first revision with this
    record."""

    id: Annotated[str, Field(examples=["lake_hive$sales$orders"])]
    source: str
    path: list[str]
    kind: str
    location: str | None
    properties: Annotated[dict[str, str], Field(description=f"properties in the catalog; secrets are {MASKED}")]
    doc: str | None
    owner: str | None
    schema: Annotated[list[dict[str, Any]] | None, Field(description="column list of the catalog")]
    native_id: str | None
    problem: str | None
    digest: str
    since_revision: int
    also_declared: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(TableDeclaration):
    """All details of one declaration."""

    dataset: TableVerification | None
    unverifiable: Annotated[str | None, Field(description="why verification does not open the table; null: it does")]
    mirrored: list[MirrorLink]
    freshness: Freshness


@dataclass(frozen=True, slots=True)
class NodePage:
    """One page of nodes in order, and the cursor of the next page; None on the last page."""

    nodes: list[TreeNode] = field(default_factory=list)
    next: str | None = None


def list_sources(index: Index, scopes: Scopes = EVERYTHING) -> list[SourceView]:
    """List the crawled sources that are visible in the scopes, by name. Counts include only covered objects."""
    with index.read() as connection:
        views = []
        for row in _fetch_sources(connection, scopes):
            namespaces, tables = records.count_objects(connection, row["name"], scopes)
            failed = coverage.count_incomplete(connection, row["name"], row["revision"], scopes)
            views.append(
                SourceView(
                    row["name"], row["impl"], *visible_state(connection, row, scopes), row["revision"], namespaces, tables, failed,
                    row["crawled_at"], row["published_at"],
                    carried=coverage.count_carried(connection, row["name"], row["revision"], scopes), full_at=row["full_at"],
                )
            )  # fmt: skip
    return views


def list_children(
    index: Index, node: Path = (), *, after: str = "", limit: int = 1000, revision: int | None = None,
    scopes: Scopes = EVERYTHING,
) -> NodePage:  # fmt: skip
    """List the children of a node that ``scopes`` make visible, by path. ``after`` is the cursor of the previous page.

    Raise NamespaceNotFound if the node does not exist or is not visible.
    """
    with index.read() as connection:
        return read_children(connection, node, after=after, limit=limit, revision=revision, scopes=scopes)


def read_children(
    connection: Connection, node: Path, *, after: str = "", limit: int, revision: int | None = None,
    scopes: Scopes = EVERYTHING,
) -> NodePage:  # fmt: skip
    """Do ``list_children`` in a transaction. With a ``revision``, the caller has already checked that the source exists."""
    if not node:
        return _list_source_nodes(connection, after, limit, scopes)
    source, path = node[0], node[1:]
    revision_number = (
        freshness.require_source(freshness.read_freshness(connection, scopes), source).revision
        if revision is None
        else revision
    )
    # Invisible nodes are not looked up at all.
    entries: list[ChildEntry] = []
    if scopes.is_visible(node):
        entries = records.list_children(
            connection, source, path, after=after, limit=limit + 2, revision=revision_number, scopes=scopes
        )
    if not entries:
        _require_namespace(connection, node, revision_number, scopes)
    # A namespace and a table may have the same path, and a cursor is only a path. So a page never ends between the two.
    end = limit + 1 if len(entries) > limit and entries[limit].path == entries[limit - 1].path else limit
    nodes = _build_nodes(connection, source, entries[:end], revision_number, scopes)
    return NodePage(nodes, entries[end - 1].path if len(entries) > end else None)


def read_sorted_children(
    connection: Connection, node: Path, order: str, *, descending: bool, after: str, limit: int, revision: int, scopes: Scopes
) -> NodePage:  # fmt: skip
    """Do ``read_children`` for the children of a source or namespace in an order of ``records.list_sorted_children``.

    Raise InvalidInput for a malformed cursor.
    """
    source, path = node[0], node[1:]
    position = None
    if after:
        kind = {"state": str, "written": float}.get(order, int)
        position = records.ChildPosition(*parse_position(after, int, kind, str, int))
    entries: list[tuple[records.ChildPosition, ChildEntry]] = []
    if scopes.is_visible(node):
        entries = records.list_sorted_children(
            connection, source, path, order, descending=descending, after=position, limit=limit + 1, revision=revision,
            scopes=scopes,
        )  # fmt: skip
    if not entries:
        _require_namespace(connection, node, revision, scopes)
    nodes = _build_nodes(connection, source, [entry for _, entry in entries[:limit]], revision, scopes)
    return NodePage(nodes, json.dumps(astuple(entries[limit - 1][0])) if len(entries) > limit else None)


def _require_namespace(connection: Connection, node: Path, revision: int, scopes: Scopes) -> None:
    """Raise NamespaceNotFound for a node without children that is neither a source nor a visible namespace."""
    source, path = node[0], node[1:]
    if not path:
        return
    if not scopes.is_visible(node) or records.find_record(connection, source, path, is_table=False, revision=revision) is None:
        raise NamespaceNotFound(f"there is no namespace {path_key(node)}", hint="federator tree lists the namespaces")


def _build_nodes(
    connection: Connection, source: str, entries: Sequence[ChildEntry], revision: int, scopes: Scopes
) -> list[TreeNode]:  # fmt: skip
    namespaces = [entry.path for entry in entries if not entry.is_table]
    proven = coverage.read_coverage(connection, source, revision, only=namespaces)
    return [_build_node(source, entry, proven, scopes) for entry in entries]


def count_tables(connection: Connection, nodes: Sequence[TreeNode], scopes: Scopes) -> dict[str, int]:
    """Return the number of tables below each namespace that the scopes cover as a whole, by object id, at most ``MAX_COUNTED + 1``.

    The nodes are of one source.
    """
    paths = [path for node in nodes if node.kind == "namespace" and scopes.covers(path := parse_path_key(node.id))]
    if not paths:
        return {}
    source = paths[0][0]
    counts = search_entries.count_tables_below(connection, source, [path_key(path[1:]) for path in paths], MAX_COUNTED + 1)
    return {object_id(source, key): number for key, number in counts.items()}


def count_declarations(connection: Connection, nodes: Sequence[TreeNode], scopes: Scopes) -> dict[str, int]:
    """Return the number of declarations of the dataset of each table with a location, by object id. The nodes are of one source."""
    paths = [parse_path_key(node.id) for node in nodes if node.location is not None]
    if not paths:
        return {}
    source = paths[0][0]
    counts = datasets.count_declarations(connection, source, [path_key(path[1:]) for path in paths], scopes)
    return {object_id(source, key): number for key, number in counts.items()}


def get_table(index: Index, node: Path, *, scopes: Scopes = EVERYTHING) -> Table:
    """Return one table. Raise TableNotFound if it does not exist or is not covered, NamespaceNotFound if its source is unknown."""
    with index.read() as connection:
        return read_table(connection, node, freshness.read_freshness(connection, scopes), scopes=scopes)


def read_table(
    connection: Connection, node: Path, known: Mapping[str, Freshness], *, scopes: Scopes = EVERYTHING
) -> Table:  # fmt: skip
    """Do ``get_table`` in a transaction. ``known`` is the freshness of the sources, read in the same transaction."""
    source = freshness.require_source(known, node[0]) if node else None
    if source is None or len(node) < 2:
        raise TableNotFound(
            f"{path_key(node)!r} is not the id of a table", hint="use source$namespace$table; federator search shows the ids"
        )
    path = node[1:]
    # Tables outside the scopes are not looked up at all.
    covered = scopes.covers(node)
    current = records.find_record(connection, node[0], path, is_table=True, revision=source.revision) if covered else None
    if current is None:
        raise TableNotFound(f"there is no table {path_key(node)}", hint=f"federator search {path[-1]}")
    table, canonical = current.record, current.canonical
    assert isinstance(table, TableRecord)
    verification = verifications.find_verification(connection, node[0], canonical) if canonical else None
    sharing = stores.list_sharing(connection, node[0], canonical, known) if canonical else []
    declarations = records.list_declarations(connection, canonical, sources=sharing, scopes=scopes) if canonical else []
    mirrored = _mirror_links(connection, node[0], path_key(path), scopes)
    return Table(
        **declaration_fields(node, current, declarations),
        dataset=_build_verification(verification, scopes) if verification is not None else None,
        unverifiable=verifications.find_verification_obstacle(table),
        mirrored=mirrored,
        freshness=source,
    )


def declaration_fields(node: Path, indexed: IndexedRecord, declarations: Sequence[str]) -> dict[str, Any]:
    """Return the fields of ``TableDeclaration`` from a table and the ids of all declarations of its location."""
    table = indexed.record
    assert isinstance(table, TableRecord)
    return {
        "id": path_key(node), "source": node[0], "path": list(node[1:]), "kind": table.kind.value, "location": table.location,
        "properties": mask_secrets(table.properties), "doc": table.doc, "owner": table.owner,
        "schema": json.loads(table.schema) if table.schema else None, "native_id": table.native_id, "problem": table.problem,
        "digest": indexed.digest, "since_revision": indexed.since_revision,
        "also_declared": [other for other in declarations if other != path_key(node)],
    }  # fmt: skip


def _list_source_nodes(connection: Connection, after: str, limit: int, scopes: Scopes) -> NodePage:
    rows = _fetch_sources(connection, scopes, after=after, limit=limit + 1)
    states = [visible_state(connection, row, scopes) for row in rows[:limit]]
    nodes = [
        TreeNode(row["name"], row["name"], "source", coverage=state, message=message)
        for row, (state, message) in zip(rows, states, strict=False)
    ]
    return NodePage(nodes, nodes[-1].name if len(rows) > limit else None)


def _fetch_sources(
    connection: Connection, scopes: Scopes, *, after: str = "", limit: int | None = None
) -> Sequence[RowMapping]:
    s = t.source.c
    query = select(t.source).where(s.name > after, visibility.is_visible_source(scopes, s.name)).order_by(s.name).limit(limit)
    return connection.execute(query).mappings().all()


def _build_node(source: str, entry: ChildEntry, proven: dict[str, Coverage], scopes: Scopes) -> TreeNode:
    path = (source, *parse_path_key(entry.path))
    if not scopes.covers(path):
        return TreeNode(path_key(path), entry.name, entry.kind.value)
    own_coverage = proven.get(entry.path) if not entry.is_table else None
    evidence = own_coverage.weakest if own_coverage is not None else None
    stored = build_stored_facts(entry.rows, entry.size, entry.written_at, entry.checked_at)
    return TreeNode(
        path_key(path), entry.name, entry.kind.value, entry.location, evidence.state.value if evidence else None, entry.verified,
        entry.problem or (evidence and evidence.reason) or None, stored,
    )  # fmt: skip


def build_stored_facts(
    rows: int | None, size: int | None, written_at: float | None, checked_at: float | None
) -> StoredFacts | None:
    """Return what verification found at a location; None if it was never opened."""
    return None if checked_at is None else StoredFacts(rows, size, written_at, checked_at)


def _build_verification(stored: Verification, scopes: Scopes) -> TableVerification:
    return TableVerification(
        canonical=stored.canonical, state=stored.state, message=stored.message, version=stored.version, rows=stored.rows,
        fragments=stored.fragments, checked_at=stored.checked_at, checked_through=datasets.visible_verifying_source(stored, scopes),
        schema=json.loads(stored.schema) if stored.schema else None,
    )  # fmt: skip


def _mirror_links(connection: Connection, source: str, path: str, scopes: Scopes) -> list[MirrorLink]:
    rows = connection.execute(_select_ledger_entries(connection, scopes), {"source": source, "path": path}).mappings()
    return [MirrorLink.from_row(row) for row in rows]


@cache_statement
def _select_ledger_entries(connection: Connection, scopes: Scopes) -> Select[Any]:
    """Return the select of a table's ledger entries whose origin and target are both inside the scopes."""
    e, source, path = t.ledger.c, bindparam("source", type_=Text), bindparam("path", type_=Text)
    both_covered = (
        visibility.is_covered(connection, scopes, e.origin_source, e.origin_path),
        visibility.is_covered(connection, scopes, e.target_source, e.target_path),
    )
    same_table = ((e.origin_source == source) & (e.origin_path == path)) | (
        (e.target_source == source) & (e.target_path == path)
    )
    return select(t.ledger).where(same_table, e.is_table == 1, *both_covered).order_by(e.mirror, e.target_path)
