"""Publish: the difference becomes the source's next revision, and misses are counted. No Spark; runs under the source's lease."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federator.index import Index, coverage, records, revisions
from federator.index.leases import Lease
from federator.model import parse_key
from federator.model.rows import coverage_row
from federator.pipeline.diff import Delta
from federator.pipeline.normalise import Crawled
from federator.planning.evidence import proves_absent


@dataclass(frozen=True, slots=True)
class Published:
    """What a crawl came to: the source's revision afterwards, and what changed.

    ``carried`` namespaces were not read, since the source's feed of changes does not name them; ``full_because`` says why all were,
    where a feed could have told.
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


def publish(
    index: Index, lease: Lease, crawled: Crawled, delta: Delta, *, run_id: str, config_digest: str, cursor: str | None = None
) -> Published:
    """Writes and publishes a revision; where nothing differs, none is made and no record row is written.

    ``cursor`` is where the source's feed of changes was before the crawl. It is kept in the transaction that makes the crawl current.
    """
    source = crawled.source
    with index.read() as connection:
        revision = records.published(connection, source)
        before = coverage.read(connection, source, revision)
    state, message = _state(crawled)
    values: dict[str, Any] = {"state": state, "message": message, "crawled_at": time.time()}
    # Where the root was not read, namespaces may have come that no event will name again.
    values["cursor"] = cursor if state != "failed" else None
    if crawled.read is None:
        values |= {"full_at": crawled.began_at, "full_config": config_digest}
    if delta.empty and {k: coverage_row(c) for k, c in before.items()} == _rows(crawled):
        _touch(index, lease, source, values)
    else:
        revision = _write(index, lease, crawled, delta, before, run_id, values)
    _count_misses(index, lease, crawled, revision, config_digest)
    with index.read() as connection:
        namespaces, tables = records.counts(connection, source)
    failures = len(crawled.failures)
    return Published(
        revision, state, delta.added, delta.changed, len(delta.removed), namespaces, tables, failures, message, crawled.carried
    )


def _write(
    index: Index,
    lease: Lease,
    crawled: Crawled,
    delta: Delta,
    before: Mapping[str, Any],
    run_id: str,
    values: Mapping[str, Any],
) -> int:
    draft = revisions.begin(index, lease, crawled.source, run_id, crawled.began_at)
    revisions.close_records(index, lease, draft, [*delta.removed, *delta.replaced])
    revisions.add_records(index, lease, draft, delta.inserts())
    with index.write() as connection:
        lease.check(connection)
        coverage.write(connection, draft, crawled.coverage.values(), before)
    counts = {"added": delta.added, "changed": delta.changed, "removed": len(delta.removed)}
    revisions.publish(index, lease, draft, **counts, values=values)
    return draft.number


def _touch(index: Index, lease: Lease, source: str, values: Mapping[str, Any]) -> None:
    with index.write() as connection:
        lease.check(connection)
        revisions.set_source(connection, source, values)


def _count_misses(index: Index, lease: Lease, crawled: Crawled, revision: int, config_digest: str) -> None:
    with index.write() as connection:
        lease.check(connection)
        lost = coverage.lost_origins(connection, crawled.source, revision)
        known = set(coverage.absences(connection, crawled.source))
        missed = [path for path in lost if proves_absent(parse_key(path), crawled.coverage, crawled.namespaces)]
        coverage.set_absences(connection, crawled.source, config_digest, missed=missed, seen=known - lost, at=crawled.began_at)


def _rows(crawled: Crawled) -> dict[str, dict[str, Any]]:
    return {key: coverage_row(c) for key, c in crawled.coverage.items()}


def _state(crawled: Crawled) -> tuple[str, str | None]:
    failures = crawled.failures
    if not failures:
        return "ok", None
    root = crawled.coverage.get("")
    if root is not None and not root.holds:
        return "failed", root.presence.reason
    first = sorted(failures, key=lambda c: c.key)[0]
    return "partial", f"{len(failures)} of {len(crawled.coverage)} namespaces failed; {first.key}: {first.presence.reason}"
