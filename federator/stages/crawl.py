"""Crawl, publish and verify sources. Each source is independent, and sources run in parallel, within the slots of Spark's tasks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

from federator import logs
from federator.connector import FederatorError, ServiceUnavailable
from federator.connector.call_metrics import CallCounts
from federator.connector.errors import split_hint
from federator.lance.circles import require_no_circle
from federator.model import ROOT, path_key
from federator.planning.crawls import unread_coverage
from federator.registry import crawl_concurrency, get_connector
from federator.runtime.spans import record_span
from federator.runtime.text import format_count
from federator.stages.change_feed import CrawlScope, plan_crawl_scope
from federator.stages.context import LEASE_WAIT_SECONDS, RunContext
from federator.stages.result import Interrupted
from federator.stages.source_stores import record_stores
from federator.stages.task_slots import TaskSlots
from federator.stages.verify import verify_sources
from federator.store import DatabaseError, call_metrics, deployment, identities, records, revisions, runs, verifications
from federator.store.failures import describe_failure
from federator.store.leases import Lease, LeaseLost, acquire_lease

if TYPE_CHECKING:
    from federator.pipeline.publish import PublishResult
    from federator.pipeline.validation import ValidatedCrawl

_log = logs.get_logger(__name__)


def crawl_sources(context: RunContext, names: Sequence[str], *, full: bool = False) -> None:
    """Crawl sources into the index, then verify the locations that are due.

    Of a source with a change feed, only the namespaces that it names are read, unless ``full``.
    """
    from federator.pipeline.session import task_slots

    context.spark_session()
    record_stores(context.index, context.settings)
    for name in names:
        source = context.settings.source(name)
        revisions.register_source(context.index, name, source.impl, source.digest)
    slots = TaskSlots(task_slots(context.settings))
    with ThreadPoolExecutor(max_workers=max(1, min(len(names), slots.total)), thread_name_prefix="crawl") as pool:
        crawl = logs.with_bound_context(_crawl_in_slots)
        pending = {name: pool.submit(crawl, context, slots, name, full=full) for name in names}
        for name, future in pending.items():
            with context.record_errors(name):
                try:
                    context.result.sources[name] = future.result()
                except DatabaseError as error:
                    context.result.errors[name] = str(describe_failure(error))
    with context.index.write() as connection:
        verifications.refresh_location_aliases(connection, context.settings.location_aliases)
    if context.settings.verify.enabled:
        verify_sources(context, [name for name in names if name in context.result.sources])


def _crawl_in_slots(context: RunContext, slots: TaskSlots, name: str, *, full: bool) -> PublishResult:
    with slots.hold(crawl_concurrency(context.settings.source(name).spec)):
        return _crawl_source(context, name, full=full)


def _crawl_source(context: RunContext, name: str, *, full: bool) -> PublishResult:
    from federator.pipeline.diff import diff_crawl
    from federator.pipeline.publish import publish_crawl
    from federator.pipeline.spark_errors import translate_spark_errors
    from federator.pipeline.validation import unproven

    source = context.settings.source(name)
    with (
        context.stage("crawl", name) as finish,
        acquire_lease(context.index, f"source:{name}", wait=LEASE_WAIT_SECONDS) as lease,
        _publishing_failure(context, name, lease),
        translate_spark_errors(f"crawl {name}"),
    ):
        _require_no_circle(context, name)
        began_at = time.time()
        scope = plan_crawl_scope(context, name, began_at, full=full)
        crawled = _read_source(context, name, scope, began_at)
        _record_worker_calls(context, name, crawled.calls)
        with context.index.write() as connection:
            lease.require_held(connection)
            verdict = identities.judge_readings(connection, name, [*scope.identities, *crawled.identities], crawl=True)
        if verdict.problem is not None:
            crawled = unproven(crawled, verdict.problem)
        with context.index.read() as connection:
            revision = records.published_revision(connection, name)
        delta = diff_crawl(context.spark_session(), context.index_reader(), crawled, revision, context.staging_area())
        published = publish_crawl(
            context.index, lease, crawled, delta, run_id=context.run.id, config_digest=source.digest, cursor=scope.cursor,
            identity=verdict.identity, went_back=scope.went_back, full_because=scope.full_reason,
        )  # fmt: skip
        runs.record_source_result(context.index, context.run, name, **asdict(published))
        finish(published.state, _summarize(published), crawled.calls)
    return published


def _require_no_circle(context: RunContext, name: str) -> None:
    """Raise InvalidInput if a source leads back to this service."""
    from federator.pipeline.deadlines import call_with_deadline

    source = context.settings.source(name)
    if get_connector(source.impl).reads_deployments:
        with context.index.read() as connection:
            fingerprint = deployment.read_fingerprint(connection)
        call_with_deadline(source.spec, lambda catalog: require_no_circle(catalog, fingerprint), source.deadline)


@contextmanager
def _publishing_failure(context: RunContext, name: str, lease: Lease) -> Iterator[None]:
    """Publish a crawl that fails as a whole as failed coverage of the root, so that older evidence is no longer the newest."""
    from federator.pipeline.diff import RevisionDelta
    from federator.pipeline.publish import publish_crawl
    from federator.pipeline.validation import unchanged_crawl

    began_at = time.time()
    try:
        yield
    except (Interrupted, LeaseLost):
        raise
    except FederatorError as error:
        unproven = {path_key(ROOT): unread_coverage(name, ServiceUnavailable.code, error.message)}
        crawled = unchanged_crawl(name, unproven, began_at=began_at)
        digest = context.settings.source(name).digest
        try:
            publish_crawl(
                context.index, lease, crawled, RevisionDelta.unchanged(name), run_id=context.run.id, config_digest=digest
            )
        except (FederatorError, DatabaseError) as publish_error:
            # This run records the failure of the source in any case.
            _log.warning("failed crawl could not be published", source=name, error=str(publish_error))
        raise


def _read_source(context: RunContext, name: str, scope: CrawlScope, began_at: float) -> ValidatedCrawl:
    from federator.pipeline.crawl import stage_crawl
    from federator.pipeline.validation import unchanged_crawl, validate_crawl

    if scope.namespaces is not None and not scope.namespaces and not scope.tables:
        return unchanged_crawl(name, scope.carried, began_at=began_at)
    namespaces = None if scope.namespaces is None else sorted(scope.namespaces)
    spark, deadline = context.spark_session(), context.settings.source(name).deadline
    staging = context.staging_area()
    staged = stage_crawl(spark, context.source_spec(name), staging, deadline=deadline, only=namespaces, tables=scope.tables)
    read = None if namespaces is None else frozenset(map(path_key, namespaces))
    small = staging.is_small(staged)
    return validate_crawl(
        spark, name, staged, began_at=began_at, small=small, read=read, carried=scope.carried, tables=scope.tables
    )


def _record_worker_calls(context: RunContext, name: str, counts: CallCounts) -> None:
    """Record the catalog calls of the workers: count them, and add the shards that they read as spans to this run's trace."""
    with context.index.write() as connection:
        call_metrics.add_counts(connection, counts)
    for shard, began, seconds, code in counts.shards:
        failure = f"error {code}" if code is not None else None
        record_span(
            f"read {name} {shard}", {"federator.source": name}, started_at=began, ended_at=began + seconds, error=failure
        )


def _summarize(published: PublishResult) -> str:
    """Return the counts and the message of a crawl; of one that failed the message alone, because nothing was read. Without hints."""
    message = split_hint(published.message or "")[0]
    if published.state == "failed" and message:
        return message
    text = f"{format_count(published.tables, 'table')} in {format_count(published.namespaces, 'namespace')}"
    numbers = {"new": published.added, "changed": published.changed, "gone": published.removed}
    changed = ", ".join(f"{number} {label}" for label, number in numbers.items() if number)
    text += f" ({changed})" if changed else ""
    if published.carried:
        text += f"; {published.carried:,} of {published.namespaces + 1:,} listings carried from earlier crawls"
    elif published.full_because:
        text += f"; read in full: {published.full_because}"
    return f"{text}; {message}" if message else text
