"""The product's rules over collections in memory, which the product itself has only in SQL and in Spark.

The proof's storage in memory needs them, and tests compare SQL and Spark with them (ADR 17).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from federator.model import Coverage, NamespaceRecord, Record, TableRecord, parent_path, path_key
from federator.planning.cells import Candidates, CellInputs, LazyRecord, LedgerCounts, LedgerRow, assign_cell, decide_cell
from federator.planning.crawls import Arrival, ArrivalCollector
from federator.planning.decision import CrawlEvidence
from federator.planning.identity import KnownIdentities
from federator.planning.mapping import MirrorContext
from federator.planning.publication import Effect, Version, compare_versions, removable


def collect_arrivals(items: Iterable[Record | Coverage]) -> dict[str, Arrival]:
    """Group the output of a crawl's shards by namespace (path key).

    ``pipeline.validation.group_by_namespace`` does the same in Spark.
    """
    collector = ArrivalCollector()
    for item in items:
        if isinstance(item, Coverage):
            collector.add_coverage(item)
        else:
            parent = path_key(parent_path(item.path))
            collector.add_record(item.key, parent, item.digest, is_namespace=isinstance(item, NamespaceRecord))
    return collector.arrivals


class Difference(NamedTuple):
    """The changes of a crawl to the index: keys of written and of removed objects.

    ``newest`` is False if the index kept a record that is newer than the crawl's.
    """

    written: list[tuple[int, str]]
    removed: list[tuple[int, str]]
    newest: bool


def difference(
    indexed: Mapping[tuple[int, str], Version],
    crawled: Mapping[tuple[int, str], Version],
    coverage: Mapping[str, Coverage],
    namespaces: Container[str],
    started_at: float,
) -> Difference:
    """Return what a crawl changes of objects by key, ``(is_table, path)``. ``pipeline.diff.diff_crawl`` does the same in Spark."""
    effects: dict[Effect, list[tuple[int, str]]] = {effect: [] for effect in Effect}
    for key in dict.fromkeys([*crawled, *indexed]):
        effects[compare_versions(indexed.get(key), crawled.get(key), started_at)].append(key)
    removed = removable(effects[Effect.MISSING], coverage, namespaces)
    newest = not (effects[Effect.OUTDATED] or effects[Effect.UNDESCRIBED])
    return Difference([*effects[Effect.ADDED], *effects[Effect.CHANGED]], removed, newest)


def lost_origins(copied: Iterable[str], tables: Container[str]) -> set[str]:
    """Return a source's tables that a ledger names as origin and that are not in the index: only they can be missed.

    ``store.misses.list_missing_origins`` does the same in SQL.
    """
    return {path for path in copied if path not in tables}


def count_losses(
    removed: Iterable[tuple[int, str]],
    written: Iterable[tuple[int, str]],
    before: Iterable[tuple[str, str | None]],
    after: Mapping[str, str | None],
) -> tuple[int, int]:
    """Count the tables that a crawl found absent and those that it found at another location.

    ``removed`` and ``written`` are keys, ``(is_table, path)``. ``before`` are the last revision's tables with their locations,
    ``after`` those of new and changed tables. A table whose location has another name now was renamed, and does not count as
    absent. ``store.losses.count_draft_losses`` does the same in SQL.
    """
    absent, changed = ({path for is_table, path in keys if is_table} for keys in (removed, written))
    locations = set(after.values())
    gone = moved = 0
    for path, location in before:
        gone += path in absent and (location is None or location not in locations)
        moved += path in changed and after.get(path, location) != location
    return gone, moved


def confirm_identities(known: KnownIdentities) -> KnownIdentities:
    """Accept every unconfirmed identity. ``store.identities.confirm`` does the same in SQL."""
    return KnownIdentities(known.accepted | {*known.unconfirmed})


def decide_all(
    context: MirrorContext, evidence: CrawlEvidence,
    origins: Iterable[TableRecord], targets: Iterable[TableRecord], ledger: Iterable[LedgerRow],
) -> Candidates:  # fmt: skip
    """Decide every cell of a mirror. ``pipeline.candidates.decide_candidates`` does the same in Spark."""
    cells: dict[str, CellInputs] = {}
    for origin in origins:
        assignment = assign_cell(context, origin)
        if assignment is not None:
            cell, refusal = assignment
            inputs = cells.setdefault(cell, CellInputs())
            if refusal is not None:
                inputs.refusals.append(refusal)
            else:
                inputs.origins.append(LazyRecord.from_record(origin))
    for target in targets:
        cells.setdefault(target.key, CellInputs()).target = LazyRecord.from_record(target)
    counts = LedgerCounts()
    for row in ledger:
        cells.setdefault(row.target_path, CellInputs()).ledger_rows.append(row)
        counts.add([row])
    decisions = [decision for cell in sorted(cells) for decision in decide_cell(context, evidence, cell, cells[cell])]
    return Candidates(decisions, sum(inputs.selected_count for inputs in cells.values()), counts)
