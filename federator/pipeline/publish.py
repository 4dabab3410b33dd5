"""Publish: write the changes of a crawl as the source's next revision, and update the misses of its tables.

Without parts that tasks write (``pipeline.record_parts``), it needs no Spark.

The calling function holds the source's lease. Each transaction checks it and raises LeaseLost if it was lost.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federator.model import ROOT, Coverage, Identity, path_key
from federator.model.rows import coverage_to_row
from federator.pipeline.diff import RevisionDelta
from federator.pipeline.validation import ValidatedCrawl
from federator.planning.crawls import is_failed
from federator.planning.losses import Loss
from federator.planning.misses import update_misses
from federator.planning.publication import Effect
from federator.store import Index, coverage, losses, misses, pending_publications, records, revisions
from federator.store.leases import Lease


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The result of a crawl. The fields are those of ``store.runs.RunSource``.

    ``revision`` is the source's revision afterwards. ``state`` is ``ok``, ``partial`` or ``failed``, and ``message`` the first failure.
    ``added``, ``changed`` and ``removed`` count records. ``namespaces`` and ``tables`` count all objects of the source afterwards.
    ``carried`` namespaces were not read, because the source's change feed does not name them. ``full_because`` says why all
    namespaces were read although the source has a change feed.
    """

    revision: int
    state: str
    added: int = 0
    changed: int = 0
    removed: int = 0
    namespaces: int = 0
    tables: int = 0
    failed_namespaces: int = 0
    message: str | None = None
    carried: int = 0
    full_because: str | None = None


def publish_crawl(
    index: Index, lease: Lease, crawled: ValidatedCrawl, delta: RevisionDelta, *, run_id: str, config_digest: str,
    cursor: str | None = None, identity: Identity | None = None, went_back: str | None = None, full_because: str | None = None,
) -> PublishResult:  # fmt: skip
    """Write and publish a revision. If nothing differs, no revision and no record row is written.

    ``config_digest`` is the digest of the source's configuration. ``cursor`` is the position of the source's change feed before the
    crawl. It is stored in the transaction that publishes the crawl. ``went_back`` says how the feed's past differs from the stored
    cursor's; None if it does not. ``full_because`` is returned in the result.
    """
    source = crawled.source
    with index.read() as connection:
        revision = records.published_revision(connection, source)
        previous_coverage = coverage.read_coverage(connection, source, revision)
    state, message = _crawl_state(crawled)
    source_columns: dict[str, Any] = {"state": state, "message": message, "crawled_at": time.time()}
    if state == "failed":
        # The next crawl must be full. The stored cursor is kept, because a feed that goes back is detected by a cursor of the feed
        # before the failure.
        source_columns["full_config"] = None
    else:
        source_columns["cursor"] = cursor
        if crawled.namespaces_to_read is None:
            source_columns |= {"full_at": crawled.began_at, "full_config": config_digest}
    # A feed that went back is recorded with a revision, even if the records are the same.
    is_unchanged = (
        delta.is_empty and went_back is None and _coverage_rows(previous_coverage) == _coverage_rows(crawled.coverage)
    )
    if is_unchanged:
        _update_source_only(index, lease, source, source_columns)
    else:
        revision_columns = {"identity": identity.to_json() if identity is not None else None, "went_back": went_back}
        revision = _write_revision(index, lease, crawled, delta, previous_coverage, run_id, source_columns, revision_columns)
    _record_evidence(index, lease, crawled, revision, config_digest)
    with index.read() as connection:
        namespaces, tables = records.count_objects(connection, source)
    return PublishResult(
        revision,
        state,
        added=delta.added,
        changed=delta.changed,
        removed=delta.removed,
        namespaces=namespaces,
        tables=tables,
        failed_namespaces=len(crawled.failures),
        message=message,
        carried=crawled.carried_count,
        full_because=full_because,
    )


def _write_revision(
    index: Index,
    lease: Lease,
    crawled: ValidatedCrawl,
    delta: RevisionDelta,
    previous_coverage: Mapping[str, Coverage],
    run_id: str,
    source_columns: Mapping[str, Any],
    revision_columns: Mapping[str, Any],
) -> int:
    """Write a draft revision and publish it. Return its number."""
    draft = revisions.begin_draft(index, lease, crawled.source, run_id, crawled.began_at)
    revisions.close_records(index, lease, draft, delta.closed)
    revisions.add_records(index, lease, draft, delta.iter_inserts())
    parts = delta.parts.write(index, lease, draft) if delta.parts is not None else None
    with index.write() as connection:
        lease.require_held(connection)
        coverage.write_coverage(connection, draft, crawled.coverage.values(), previous_coverage)
    revisions.publish_draft(
        index,
        lease,
        draft,
        added=delta.added,
        changed=delta.changed,
        removed=delta.removed,
        values=source_columns,
        evidence={**revision_columns, **_count_lost_tables(index, draft, delta)},
        parts=parts,
    )
    return draft.number


def _count_lost_tables(index: Index, draft: revisions.DraftRevision, delta: RevisionDelta) -> dict[str, Any]:
    """Return the columns of the ``revision`` row that ``planning.losses`` reads: the number of ``tables`` in the previous revision,
    how many of them are ``gone``, and how many have ``moved``. Empty if neither happened."""
    removed, replaced = (delta.counts[effect, 1] for effect in (Effect.MISSING, Effect.CHANGED))
    if not (removed or replaced):
        return {}
    with index.read() as connection:
        _, tables = records.count_objects(connection, delta.source)
        # At most this many are lost: a removed table may be renamed, and a replaced one may have kept its location.
        upper_bound = Loss(delta.source, revision=0, tables=tables, gone=removed, moved=replaced)
        if not upper_bound.exceeds_half:
            # Too few for a hold, so comparing locations is not worth it.
            return {"tables": tables, "gone": removed}
        gone, moved = losses.count_draft_losses(connection, draft)
        return {"tables": tables, "gone": gone, "moved": moved}


def _update_source_only(index: Index, lease: Lease, source: str, values: Mapping[str, Any]) -> None:
    with index.write() as connection:
        lease.require_held(connection)
        revisions.update_source(connection, source, values)


def _record_evidence(index: Index, lease: Lease, crawled: ValidatedCrawl, revision: int, config_digest: str) -> None:
    """Update the misses of the source, and remove the pending publications that the crawl has replaced."""
    with index.write() as connection:
        lease.require_held(connection)
        missing_origins = misses.list_missing_origins(connection, crawled.source, revision)
        stored = misses.stored_misses(connection, crawled.source)
        updated = update_misses(stored, config_digest, missing_origins, crawled.coverage, crawled.namespaces, crawled.began_at)
        misses.save_misses(connection, crawled.source, config_digest, updated)
        pending_publications.remove_crawled(connection, crawled.source, crawled.began_at, crawled.coverage)


def _coverage_rows(by_namespace: Mapping[str, Coverage]) -> dict[str, dict[str, Any]]:
    return {key: coverage_to_row(namespace_coverage) for key, namespace_coverage in by_namespace.items()}


def _crawl_state(crawled: ValidatedCrawl) -> tuple[str, str | None]:
    """Return ``state`` and ``message`` of the result."""
    failures = crawled.failures
    if not failures:
        return "ok", None
    if is_failed(crawled.coverage):
        return "failed", crawled.coverage[path_key(ROOT)].presence.reason
    first = sorted(failures, key=lambda namespace_coverage: namespace_coverage.key)[0]
    return "partial", f"{len(failures)} of {len(crawled.coverage)} namespaces failed; {first.key}: {first.presence.reason}"
