"""Metrics in Prometheus' text format, counted from the index at each scrape: every API process tells the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

import federator
from federator.api.access import Role
from federator.api.context import CallerOf, IndexOf
from federator.api.problems import documented
from federator.connector.calls import BUCKETS
from federator.index import notifications, telemetry
from federator.model.drift import DriftKind
from federator.sync.telling import keep_counts

router = APIRouter(tags=["metrics"])

_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"description": "The metrics, in the text format that was asked for", "content": {"text/plain": {}}}
}
_STATES = ("ok", "partial", "failed")


@router.get("/metrics", response_class=Response, responses={**_TEXT, **documented(403)}, summary="Metrics for Prometheus")
def get_metrics(request: Request, index: IndexOf, caller: CallerOf) -> Response:
    """Freshness, coverage, drift, pending changes, calls to catalogs, runs, leases, the queue and the audit. No label holds a table's
    name. For who may see everything: the numbers tell of all sources."""
    caller.require_everything(Role.VIEWER)
    keep_counts(index)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Counts(telemetry.read(index)))
    encode, media_type = choose_encoder(request.headers.get("accept", ""))
    return Response(encode(registry), headers={"Content-Type": media_type})


class _Counts(Collector):
    def __init__(self, counts: telemetry.Telemetry) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("federator_build", "The version that answers", {"version": federator.__version__})
        yield from self._sources()
        yield from self._mirrors()
        yield from self._service()
        yield from self._drift()
        yield from self._catalogs()

    def _sources(self) -> Iterator[Metric]:
        fresh = GaugeMetricFamily("federator_source_freshness_seconds", "Seconds since a source was crawled", labels=["source"])
        state = GaugeMetricFamily(
            "federator_source_state", "1 for the state of a source's last crawl, 0 for the others", labels=["source", "state"]
        )
        namespaces = GaugeMetricFamily(
            "federator_source_namespaces", "Namespaces by what their last listing proved", labels=["source", "coverage"]
        )
        tables = GaugeMetricFamily("federator_source_tables", "Tables that a source declares", labels=["source"])
        for source in self._counts.sources:
            if source.age is not None:
                fresh.add_metric([source.name], source.age)
            for name in dict.fromkeys((*_STATES, source.state)):
                state.add_metric([source.name, name], float(name == source.state))
            for name in dict.fromkeys(("complete", "failed", *source.namespaces)):
                namespaces.add_metric([source.name, name], source.namespaces.get(name, 0))
            tables.add_metric([source.name], source.tables)
        yield from (fresh, state, namespaces, tables)

    def _mirrors(self) -> Iterator[Metric]:
        pending = GaugeMetricFamily(
            "federator_mirror_pending_changes",
            "Changes of a mirror's newest plan that are not made",
            labels=["mirror", "action"],
        )
        refused = GaugeMetricFamily(
            "federator_mirror_refusals",
            "Differences that a mirror's newest plan leaves as they are",
            labels=["mirror", "reason"],
        )
        held = GaugeMetricFamily(
            "federator_mirror_plan_held", "1 where a mirror's newest plan waits for a person", labels=["mirror"]
        )
        for plan in self._counts.plans:
            _add(pending, plan.mirror, plan.changes)
            _add(refused, plan.mirror, plan.refusals)
            held.add_metric([plan.mirror], float(plan.held))
        outcomes = GaugeMetricFamily(
            "federator_mirror_recent_outcomes", "Outcomes of the last 24 hours, by state", labels=["mirror", "state"]
        )
        for (mirror, state), number in sorted(self._counts.outcomes.items()):
            outcomes.add_metric([mirror, state], number)
        yield from (pending, refused, held, outcomes)

    def _service(self) -> Iterator[Metric]:
        runs = GaugeMetricFamily("federator_recent_runs", "Runs begun in the last 24 hours", labels=["kind", "state"])
        for (kind, state), number in sorted(self._counts.runs.items()):
            runs.add_metric([kind, state], number)
        yield runs
        for name, what, value in (
            ("federator_requests_queued", "Requests that wait for the worker", self._counts.queued),
            ("federator_requests_oldest_seconds", "Age of the request that waits longest", self._counts.queue_age),
            ("federator_worker_leading", "1 where a worker holds the scheduler's lease", self._counts.leading),
            ("federator_audit_events", "Number of the newest sealed event", self._counts.sealed),
            ("federator_audit_unsealed_events", "Events that are not in the chain yet", self._counts.unsealed),
            ("federator_audit_unanchored_events", "Sealed events that no published head proves", self._counts.unanchored),
        ):
            yield GaugeMetricFamily(name, what, float(value))

    def _drift(self) -> Iterator[Metric]:
        drift = GaugeMetricFamily(
            "federator_drift", "Differences between catalogs, and with storage, that are there now",
            labels=["kind", "severity", "source"],
        )  # fmt: skip
        counts = self._counts.drift
        for kind in DriftKind:
            # A kind that is not there at all is a zero, so that an alert on it can end.
            of = {key: number for key, number in counts.items() if key[0] == kind} or {(kind.value, kind.severity.value, ""): 0}
            for labels, number in sorted(of.items()):
                drift.add_metric(list(labels), number)
        held = GaugeMetricFamily("federator_lease_held", "1 where some process holds a lease now", labels=["lease"])
        taken = CounterMetricFamily("federator_lease_taken", "How often a lease was taken", labels=["lease"])
        for name, (is_held, number) in sorted(self._counts.leases.items()):
            held.add_metric([name], float(is_held))
            taken.add_metric([name], number)
        told = GaugeMetricFamily(
            "federator_notifications", "Notifications by what became of them; sent ones are kept for 30 days",
            labels=["channel", "state"],
        )  # fmt: skip
        known = self._counts.notifications
        for channel in sorted({channel for channel, _ in known}):
            for state in notifications.STATES:
                told.add_metric([channel, state], known.get((channel, state), 0))
        waiting = GaugeMetricFamily("federator_notices_waiting", "Notices that no channel was asked about yet")
        waiting.add_metric([], self._counts.notices)
        yield from (drift, held, taken, told, waiting)

    def _catalogs(self) -> Iterator[Metric]:
        latency = HistogramMetricFamily(
            "federator_catalog_call_seconds", "Calls to catalogs and how long they took", labels=["source", "operation"]
        )
        for found in self._counts.latencies:
            buckets = list(zip(BUCKETS, found.cumulative, strict=True))
            latency.add_metric([found.source, found.operation], buckets, found.seconds)
        errors = CounterMetricFamily(
            "federator_catalog_errors",
            "Errors of calls to catalogs, by the Lance error code",
            labels=["source", "operation", "code"],
        )
        for labels, number in sorted(self._counts.errors.items()):
            errors.add_metric(list(labels), number)
        yield from (latency, errors)


def _add(family: GaugeMetricFamily, mirror: str, counts: Mapping[str, int]) -> None:
    for label, number in sorted(counts.items()):
        family.add_metric([mirror, label], number)
