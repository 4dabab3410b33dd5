"""The scope of a crawl: everything, or only what the source's change feed and the gaps in the index require.

The feed cursor is read before the crawl starts. If the feed cannot be used, a full crawl is made, and its reason is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from federator.connector import Catalog, CatalogChanges, FederatorError, IdentityChanged, Unsupported
from federator.model import Coverage, Path
from federator.planning.identity import IdentityReading
from federator.planning.incremental import NamedTables, carried_coverage, full_crawl_reason, namespaces_to_read, tables_to_read
from federator.registry import get_connector
from federator.stages.context import RunContext
from federator.store import feed_state, records


@dataclass(frozen=True, slots=True)
class CrawlScope:
    """What a crawl reads: whole namespaces (None: everything) and, by name, tables of others. ``carried`` is the coverage of these.

    ``cursor`` is the position where the next crawl continues. None: there is no position. ``full_reason`` says why a full crawl is
    made although the source has a change feed. None if that is no news. ``went_back`` says how the feed's past differs from the
    one at the cursor; None if it does not. ``identities`` are those of the connections that read the feed.
    """

    cursor: str | None = None
    namespaces: Collection[Path] | None = None
    carried: Mapping[str, Coverage] = field(default_factory=dict)
    tables: Sequence[NamedTables] = ()
    full_reason: str | None = None
    went_back: str | None = None
    identities: tuple[IdentityReading, ...] = ()


def plan_crawl_scope(context: RunContext, name: str, now: float, *, full: bool = False) -> CrawlScope:
    """Return what a crawl of a source must read, by its change feed. The source's lease must be held.

    The feed is read for a full crawl too, since only the previous cursor tells whether the feed went back.
    """
    from federator.pipeline.deadlines import call_with_deadline

    source = context.settings.source(name)
    if not source.incremental or not get_connector(source.impl).capabilities.change_feed:
        return CrawlScope()
    with context.index.read() as connection:
        state = feed_state.read_feed_state(connection, name)
    reason = full_crawl_reason(state, config=source.digest, interval=source.full_every, now=now, requested=full)
    previous = state.cursor
    try:
        if previous is None:
            identity, cursor = call_with_deadline(
                source.spec, lambda catalog: (_read_identity(catalog), catalog.current_feed_cursor()), source.deadline
            )
            return CrawlScope(cursor, full_reason=reason or None, identities=(identity,))
        identity, changes = call_with_deadline(
            source.spec, lambda catalog: (_read_identity(catalog), catalog.changes_since(previous)), source.deadline
        )
    except Unsupported:
        # The server has no change feed, so each crawl is full and needs no reason.
        return CrawlScope()
    except IdentityChanged as error:
        # The connections of the feed reached two catalogs, so the crawl would too.
        return CrawlScope(identities=(IdentityReading(error=str(error)),))
    except FederatorError as error:
        return CrawlScope(previous, full_reason=f"its change feed could not be read: {error.message}")
    scope = CrawlScope(changes.cursor, full_reason=reason) if reason is not None else _incremental_scope(context, name, changes)
    return replace(scope, went_back=changes.full_crawl if changes.went_back else None, identities=(identity,))


def _read_identity(catalog: Catalog) -> IdentityReading:
    return IdentityReading(catalog.identity())


def _incremental_scope(context: RunContext, name: str, changes: CatalogChanges) -> CrawlScope:
    if changes.full_crawl is not None:
        return CrawlScope(changes.cursor, full_reason=changes.full_crawl)
    rules = [rule for rule in context.settings.mirror_rules.values() if rule.origin == name]
    with context.index.read() as connection:
        revision = records.published_revision(connection, name)
        known = feed_state.read_indexed_source(connection, name, revision, rules, changes.tables)
    namespaces = namespaces_to_read(changes, known)
    carried = carried_coverage(known.coverage, namespaces, revision)
    return CrawlScope(changes.cursor, namespaces, carried, tables_to_read(changes, known, namespaces))
