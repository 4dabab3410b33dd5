"""Crawl, publish, verify: each source on its own, side by side."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from federator import logs
from federator.connector import FederatorError, ServiceUnavailable
from federator.connector.calls import Counts
from federator.connector.spans import ended
from federator.index import DatabaseError, calls, datasets, identities, records, revisions, runs
from federator.index.failures import describe_failure
from federator.index.leases import Lease, LeaseLost, hold
from federator.model import ROOT, path_key
from federator.planning.crawls import unread
from federator.sync.following import Reading, follow
from federator.sync.result import Interrupted, counted, tally
from federator.sync.work import LEASE_PATIENCE, Work

if TYPE_CHECKING:
    from federator.pipeline.normalise import Crawled
    from federator.pipeline.publish import Published

_log = logs.get(__name__)
_OUTCOME = ("revision", "state", "message", "tables", "namespaces", "added", "changed", "removed", "failed_namespaces")
_FEED = ("carried", "full_because")


def crawl(work: Work, names: Sequence[str], *, full: bool = False) -> None:
    """Reads sources into the index, then opens the locations that are due.

    Of a source with a feed of changes only what that names, unless ``full``.
    """
    work.spark()
    for name in names:
        source = work.settings.source(name)
        revisions.register(work.index, name, source.impl, source.digest)
    with ThreadPoolExecutor(max_workers=max(1, len(names)), thread_name_prefix="crawl") as pool:
        pending = {name: pool.submit(logs.carried(_crawl), work, name, full=full) for name in names}
        for name, future in pending.items():
            with work.recording(name):
                try:
                    work.result.sources[name] = future.result()
                except DatabaseError as error:
                    work.result.errors[name] = str(describe_failure(error))
    with work.index.write() as connection:
        datasets.follow(connection, work.settings.aliases)
    if work.settings.verify.enabled:
        end = time.monotonic() + work.settings.verify.max_seconds
        for name in [name for name in names if name in work.result.sources]:
            with work.recording(f"verify {name}"):
                _verify(work, name, end - time.monotonic())


def _crawl(work: Work, name: str, *, full: bool) -> Published:
    from federator.pipeline.diff import diff
    from federator.pipeline.normalise import unproven
    from federator.pipeline.publish import publish
    from federator.pipeline.session import engine_errors

    source = work.settings.source(name)
    with (
        work.step("crawl", name) as done,
        hold(work.index, f"source:{name}", wait=LEASE_PATIENCE) as lease,
        _publishing_failure(work, name, lease),
        engine_errors(f"crawl {name}"),
    ):
        began_at = time.time()
        reading = follow(work, name, began_at, full=full)
        crawled = _read(work, name, reading, began_at)
        _told_of_calls(work, name, crawled.calls)
        with work.index.write() as connection:
            lease.check(connection)
            verdict = identities.check(connection, name, [*reading.identities, *crawled.identities], crawl=True)
        if verdict.problem is not None:
            crawled = unproven(crawled, verdict.problem)
        with work.index.read() as connection:
            revision = records.published(connection, name)
        delta = diff(work.spark(), work.reader(), crawled, revision, work.staging)
        published = publish(
            work.index, lease, crawled, delta, run_id=work.run.id, config_digest=source.digest, cursor=reading.cursor,
            identity=verdict.identity, went_back=reading.full_because if reading.went_back else None,
        )  # fmt: skip
        published = replace(published, full_because=reading.full_because)
        runs.source_outcome(work.index, work.run, name, **{field: getattr(published, field) for field in (*_OUTCOME, *_FEED)})
        done(published.state, _told(published))
    return published


@contextmanager
def _publishing_failure(work: Work, name: str, lease: Lease) -> Iterator[None]:
    """A crawl that fails as a whole is a failed Coverage of the root: what an earlier crawl proved is not the newest evidence."""
    from federator.pipeline.diff import Delta
    from federator.pipeline.normalise import untouched
    from federator.pipeline.publish import publish

    began_at = time.time()
    try:
        yield
    except (Interrupted, LeaseLost):
        raise
    except FederatorError as error:
        unproven = {path_key(ROOT): unread(name, ServiceUnavailable.code, error.message)}
        crawled = untouched(name, unproven, began_at=began_at)
        digest = work.settings.source(name).digest
        try:
            publish(work.index, lease, crawled, Delta.nothing(name), run_id=work.run.id, config_digest=digest)
        except (FederatorError, DatabaseError) as other:
            # This run knows all the same that the source was not read.
            _log.warning("a failed crawl could not be published", source=name, error=str(other))
        raise


def _read(work: Work, name: str, reading: Reading, began_at: float) -> Crawled:
    from federator.pipeline.crawl import stage
    from federator.pipeline.normalise import normalise, untouched

    if reading.namespaces is not None and not reading.namespaces:
        return untouched(name, reading.carried, began_at=began_at)
    only = None if reading.namespaces is None else sorted(reading.namespaces)
    spark, deadline = work.spark(), work.settings.source(name).deadline
    staged = stage(spark, work.spec(name), work.staging, deadline=deadline, only=only)
    read = None if only is None else frozenset(map(path_key, only))
    return normalise(spark, name, staged, began_at=began_at, read=read, carried=reading.carried)


def _verify(work: Work, name: str, seconds: float) -> None:
    from federator.pipeline.session import engine_errors
    from federator.pipeline.verify import verify

    limits = work.settings.verify
    with work.index.read() as connection:
        due = datasets.due(connection, name, checked_before=time.time() - limits.max_age, limit=limits.max_tables)
    if not due:
        return
    with work.step("verify", name) as done, engine_errors(f"verify {name}"):
        rows = list(verify(work.spark(), work.spec(name), [dict(row) for row in due], timeout=limits.timeout, seconds=seconds))
        with work.index.write() as connection:
            datasets.save(connection, rows)
        left = f"; {len(due) - len(rows):,} left for the next run" if len(rows) < len(due) else ""
        done("ok", tally([row["state"].replace("_", " ") for row in rows]) + left)


def _told_of_calls(work: Work, name: str, counts: Counts) -> None:
    """What the workers did: counted, and the shards that they read as spans of this run's trace."""
    with work.index.write() as connection:
        calls.add(connection, counts)
    for shard, began, seconds, code in counts.shards:
        failure = f"error {code}" if code is not None else None
        ended(f"read {name} {shard}", {"federator.source": name}, began=began, ended=began + seconds, error=failure)


def _told(published: Published) -> str:
    text = f"{counted(published.tables, 'table')} in {counted(published.namespaces, 'namespace')}"
    numbers = {"new": published.added, "changed": published.changed, "gone": published.removed}
    changed = ", ".join(f"{number} {word}" for word, number in numbers.items() if number)
    text += f" ({changed})" if changed else ""
    if published.carried:
        text += f"; {published.carried:,} of {published.namespaces + 1:,} listings carried, the feed of changes names nothing in them"
    elif published.full_because:
        text += f"; read in full: {published.full_because}"
    return f"{text}; {published.message}" if published.message else text
