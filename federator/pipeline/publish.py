"""Publish: the difference becomes the source's next revision, and misses are counted. No Spark; runs under the source's lease."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federator.index import Index, coverage, records, revisions
from federator.index.leases import Lease
from federator.model import Identity
from federator.model.rows import coverage_row
from federator.pipeline.diff import Delta
from federator.pipeline.normalise import Crawled
from federator.planning.losses import Loss
from federator.planning.misses import update_misses


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
    index: Index, lease: Lease, crawled: Crawled, delta: Delta, *, run_id: str, config_digest: str, cursor: str | None = None,
    identity: Identity | None = None, went_back: str | None = None,
) -> Published:  # fmt: skip
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
    # A feed that went back is kept with a revision, also where the records are the same.
    same = delta.empty and went_back is None and {k: coverage_row(c) for k, c in before.items()} == _rows(crawled)
    if same:
        _touch(index, lease, source, values)
    else:
        evidence = {"identity": identity.to_json() if identity is not None else None, "went_back": went_back}
        revision = _write(index, lease, crawled, delta, before, run_id, values, evidence | _losses(index, delta))
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
    evidence: Mapping[str, Any],
) -> int:
    draft = revisions.begin(index, lease, crawled.source, run_id, crawled.began_at)
    revisions.close_records(index, lease, draft, [*delta.removed, *delta.replaced])
    revisions.add_records(index, lease, draft, delta.inserts())
    with index.write() as connection:
        lease.check(connection)
        coverage.write(connection, draft, crawled.coverage.values(), before)
    revisions.publish(
        index,
        lease,
        draft,
        added=delta.added,
        changed=delta.changed,
        removed=len(delta.removed),
        values=values,
        evidence=evidence,
    )
    return draft.number


def _losses(index: Index, delta: Delta) -> dict[str, Any]:
    """Count the tables of the last revision, and how many of them are absent now or have another location.

    A table whose location has another name now was renamed, and is not absent.
    """
    removed = {path for is_table, path in delta.removed if is_table}
    replaced = {path for is_table, path in delta.replaced if is_table}
    if not (removed or replaced):
        return {}
    with index.read() as connection:
        _, tables = records.counts(connection, delta.source)
        if not Loss(delta.source, 0, tables, len(removed), len(replaced)).half:
            # Where they were does not matter then.
            return {"tables": tables, "gone": len(removed)}
        after = dict(delta.locations())
        locations = set(after.values())
        gone = moved = 0
        for path, location in records.canonicals(connection, delta.source):
            gone += path in removed and (location is None or location not in locations)
            moved += path in replaced and after.get(path, location) != location
        return {"tables": tables, "gone": gone, "moved": moved}


def _touch(index: Index, lease: Lease, source: str, values: Mapping[str, Any]) -> None:
    with index.write() as connection:
        lease.check(connection)
        revisions.set_source(connection, source, values)


def _count_misses(index: Index, lease: Lease, crawled: Crawled, revision: int, config_digest: str) -> None:
    with index.write() as connection:
        lease.check(connection)
        lost = coverage.lost_origins(connection, crawled.source, revision)
        stored = coverage.stored_misses(connection, crawled.source)
        updated = update_misses(stored, config_digest, lost, crawled.coverage, crawled.namespaces, crawled.began_at)
        coverage.save_misses(connection, crawled.source, config_digest, updated)


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
