"""Metrics in the Prometheus text format. They are read from the index at each scrape, so every API process returns the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

import federator
from federator.api.dependencies import IndexDep, PrincipalDep
from federator.api.principals import Role
from federator.api.problems import problem_docs
from federator.connector.call_metrics import BUCKET_LABELS
from federator.model.drift import DriftKind
from federator.store import call_metrics, notifications
from federator.views import metrics

router = APIRouter()

_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"description": "The metrics, in the requested text format", "content": {"text/plain": {}}}
}
# States of a crawl, and of coverage, that are reported even if no source or namespace has them.
_CRAWL_STATES = ("ok", "partial", "failed")
_COVERAGE_STATES = ("complete", "failed")


@router.get("/metrics", response_class=Response, responses={**_TEXT, **problem_docs(403)}, summary="Metrics for Prometheus")
def get_metrics(request: Request, index: IndexDep, principal: PrincipalDep) -> Response:
    """Freshness, coverage, drift, pending changes, calls to catalogs, runs, leases, the queue and the audit. No label contains a table
    name. Needs the scope `*`, because the numbers cover all sources."""
    principal.require_full_scope(Role.VIEWER)
    call_metrics.flush_meter(index)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_MetricsCollector(metrics.read_metrics(index)))
    encode, media_type = choose_encoder(request.headers.get("accept", ""))
    return Response(encode(registry), headers={"Content-Type": media_type})


class _MetricsCollector(Collector):
    """The metrics of one scrape. Each method yields those of one part of the service."""

    def __init__(self, counts: metrics.ServiceMetrics) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("federator_build", "Version of the service", {"version": federator.__version__})
        yield from self._sources()
        yield from self._mirrors()
        yield from self._service()
        yield from self._drift()
        yield from self._leases()
        yield from self._notifications()
        yield from self._catalogs()

    def _sources(self) -> Iterator[Metric]:
        fresh = GaugeMetricFamily("federator_source_freshness_seconds", "Seconds since a source was crawled", labels=["source"])
        state = GaugeMetricFamily(
            "federator_source_state", "1 for the state of a source's last crawl, 0 for the others", labels=["source", "state"]
        )
        namespaces = GaugeMetricFamily(
            "federator_source_namespaces", "Namespaces by the state of their last listing", labels=["source", "coverage"]
        )
        tables = GaugeMetricFamily("federator_source_tables", "Tables that a source declares", labels=["source"])
        for source in self._counts.sources:
            if source.age is not None:
                fresh.add_metric([source.name], source.age)
            for crawl_state in dict.fromkeys((*_CRAWL_STATES, source.state)):
                state.add_metric([source.name, crawl_state], float(crawl_state == source.state))
            for coverage_state in dict.fromkeys((*_COVERAGE_STATES, *source.namespaces)):
                namespaces.add_metric([source.name, coverage_state], source.namespaces.get(coverage_state, 0))
            tables.add_metric([source.name], source.tables)
        yield from (fresh, state, namespaces, tables)

    def _mirrors(self) -> Iterator[Metric]:
        pending = GaugeMetricFamily(
            "federator_mirror_pending_changes",
            "Changes of a mirror's newest plan that are not applied",
            labels=["mirror", "action"],
        )
        refused = GaugeMetricFamily(
            "federator_mirror_refusals",
            "Refusals of a mirror's newest plan",
            labels=["mirror", "reason"],
        )
        held = GaugeMetricFamily(
            "federator_mirror_plan_held", "1 if a mirror's newest plan waits for a decision", labels=["mirror"]
        )
        for plan in self._counts.plans:
            _add_counts(pending, plan.mirror, plan.changes)
            _add_counts(refused, plan.mirror, plan.refusals)
            held.add_metric([plan.mirror], float(plan.held))
        outcomes = GaugeMetricFamily(
            "federator_mirror_recent_outcomes", "Outcomes of the last 24 hours, by state", labels=["mirror", "state"]
        )
        for (mirror, state), number in sorted(self._counts.outcomes.items()):
            outcomes.add_metric([mirror, state], number)
        yield from (pending, refused, held, outcomes)

    def _service(self) -> Iterator[Metric]:
        runs = GaugeMetricFamily("federator_recent_runs", "Runs started in the last 24 hours", labels=["kind", "state"])
        for (kind, state), number in sorted(self._counts.runs.items()):
            runs.add_metric([kind, state], number)
        yield runs
        for name, help_text, value in (
            ("federator_requests_queued", "Requests that wait for the worker", self._counts.queued),
            ("federator_requests_oldest_seconds", "Age of the oldest waiting request", self._counts.queue_age),
            ("federator_worker_leading", "1 if a worker holds the scheduler's lease", self._counts.leading),
            ("federator_audit_events", "Sequence number of the newest sealed event", self._counts.sealed),
            ("federator_audit_unsealed_events", "Events that are not in the chain yet", self._counts.unsealed),
            ("federator_audit_unanchored_events", "Sealed events that no published head covers", self._counts.unanchored),
        ):
            yield GaugeMetricFamily(name, help_text, float(value))

    def _drift(self) -> Iterator[Metric]:
        drift = GaugeMetricFamily(
            "federator_drift", "Open drift between catalogs, and with storage",
            labels=["kind", "severity", "source"],
        )  # fmt: skip
        counts = self._counts.drift
        for kind in DriftKind:
            # Report zero for a kind without drift: otherwise an alert on it would never resolve.
            numbers = {key: number for key, number in counts.items() if key[0] == kind} or {
                (kind.value, kind.severity.value, ""): 0
            }
            for labels, number in sorted(numbers.items()):
                drift.add_metric(list(labels), number)
        yield drift

    def _leases(self) -> Iterator[Metric]:
        held = GaugeMetricFamily("federator_lease_held", "1 if a process holds the lease", labels=["lease"])
        taken = CounterMetricFamily("federator_lease_taken", "Number of times a lease was taken", labels=["lease"])
        for name, lease in sorted(self._counts.leases.items()):
            held.add_metric([name], float(lease.is_held))
            taken.add_metric([name], lease.times_taken)
        yield from (held, taken)

    def _notifications(self) -> Iterator[Metric]:
        by_state = GaugeMetricFamily(
            "federator_notifications", "Notifications by state; sent ones are kept for 30 days",
            labels=["channel", "state"],
        )  # fmt: skip
        counted = self._counts.notifications
        for channel in sorted({channel for channel, _ in counted}):
            for state in notifications.STATES:
                by_state.add_metric([channel, state], counted.get((channel, state), 0))
        waiting = GaugeMetricFamily("federator_notices_waiting", "Notices that are not yet matched with the channels")
        waiting.add_metric([], self._counts.notices)
        yield from (by_state, waiting)

    def _catalogs(self) -> Iterator[Metric]:
        latency = HistogramMetricFamily(
            "federator_catalog_call_seconds", "Duration of calls to catalogs", labels=["source", "operation"]
        )
        for calls in self._counts.latencies:
            buckets = list(zip(BUCKET_LABELS, calls.cumulative, strict=True))
            latency.add_metric([calls.source, calls.operation], buckets, calls.seconds)
        errors = CounterMetricFamily(
            "federator_catalog_errors",
            "Errors of calls to catalogs, by the Lance error code",
            labels=["source", "operation", "code"],
        )
        for labels, number in sorted(self._counts.errors.items()):
            errors.add_metric(list(labels), number)
        yield from (latency, errors)


def _add_counts(family: GaugeMetricFamily, mirror: str, counts: Mapping[str, int]) -> None:
    for label, number in sorted(counts.items()):
        family.add_metric([mirror, label], number)
