"""Metrics: equal to the index; the dashboard and the alerts use existing metrics only."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import insert

from federator import audit
from federator.api.app import create_app
from federator.audit.heads import record_head
from federator.connector.call_metrics import PROCESS_METER, CallMeter
from federator.settings import Settings
from federator.store import Index, audit_log, call_metrics, journal, notifications, plans, requests, runs
from federator.store import tables as t
from federator.store.leases import acquire_lease
from tests.fixtures.index_content import intent
from tests.unit.api.conftest import Api

DEPLOY = Path(__file__).parents[3] / "deploy"


def metrics(api: Api) -> dict[str, float]:
    """Every sample, by its name and its labels as Prometheus writes them."""
    response = api.get("/metrics")
    assert response.status_code == 200, response.text
    result = {}
    for family in text_string_to_metric_families(response.text):
        assert family.documentation, family.name
        for sample in family.samples:
            labels = ",".join(f'{key}="{value}"' for key, value in sorted(sample.labels.items()))
            result[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return result


@pytest.fixture
def busy(index: Index) -> Index:
    """A held plan with refusals, runs, outcomes and requests."""
    run = runs.insert_run(index, "sync", actor="ann")
    runs.finish_run(index, run, "partial", summary={})
    body = {
        "changes": [*[{"action": "declare_table"}] * 4, {"action": "update_table"}],
        "refusals": [{"reason": "conflict"}, {"reason": "conflict"}],
        "held": ["max_changes: 2 changes, max_changes is 1"],
    }
    with index.write() as connection:
        old = {"changes": [], "refusals": [{"reason": "old"}], "held": []}
        plans.save_plan(connection, digest="d1", mirror="m", run_id=run.id, state="ready", body=json.dumps(old))
        time.sleep(0.002)
        plans.save_plan(connection, digest="d2", mirror="m", run_id=run.id, state="held", body=json.dumps(body))
        for number, state in enumerate(("done", "done", "failed")):
            journal.insert_intent(
                connection, intent(f"op{number}", run_id=run.id, plan="d2", seq=number, target_path=f"x{number}")
            )
            journal.record_outcome(connection, f"op{number}", state)
        requests.queue_request(connection, "crawl", {}, actor="ann")
        requests.queue_request(connection, "sync", {}, actor="ann")
        notifications.queue_notification(connection, "ops", "{}", severity="error", events=1, body={}, due_at=0.0)
        result = {"kind": "missing", "severity": "high", "source": "lake", "detail": "", "first_seen": 0.0, "last_seen": 0.0}
        gone = {"resolved_at": 1.0}
        connection.execute(
            insert(t.drift), [{**result, "subject": f"lake$s${n}", "other": "", "resolved_at": None} for n in (1, 2)]
        )
        connection.execute(insert(t.drift), [{**result, "subject": "lake$s$3", "other": "", **gone}])
    meter = CallMeter()
    for seconds in (0.003, 0.05, 1000.0):
        meter.record_call("lake", "describe_table", seconds)
    meter.record_call("lake", "describe_table", 0.05, {"17": 1})
    call_metrics.flush_meter(index, meter)
    return index


def test_sources(api: Api) -> None:
    result = metrics(api)
    assert result['federator_source_tables{source="lake"}'] == 40
    assert result['federator_source_namespaces{coverage="failed",source="lake"}'] == 1
    assert result['federator_source_namespaces{coverage="complete",source="lake"}'] == 1
    assert result['federator_source_state{source="lake",state="partial"}'] == 1
    assert result['federator_source_state{source="lake",state="ok"}'] == 0
    assert 0 <= result['federator_source_freshness_seconds{source="lake"}'] < 3600
    assert any(name.startswith("federator_build_info") for name in result)


def test_mirrors_runs_and_requests(api: Api, busy: Index) -> None:
    result = metrics(api)
    assert result['federator_mirror_pending_changes{action="declare_table",mirror="m"}'] == 2
    assert result['federator_mirror_pending_changes{action="update_table",mirror="m"}'] == 1
    assert result['federator_mirror_refusals{mirror="m",reason="conflict"}'] == 2
    assert 'federator_mirror_refusals{mirror="m",reason="old"}' not in result
    assert result['federator_mirror_plan_held{mirror="m"}'] == 1
    assert result['federator_mirror_recent_outcomes{mirror="m",state="done"}'] == 2
    assert result['federator_mirror_recent_outcomes{mirror="m",state="failed"}'] == 1
    assert result['federator_recent_runs{kind="sync",state="partial"}'] == 1
    assert result["federator_requests_queued"] == 2
    assert result["federator_requests_oldest_seconds"] >= 0


def test_drift_by_kind(api: Api, busy: Index) -> None:
    result = metrics(api)
    assert result['federator_drift{kind="missing",severity="high",source="lake"}'] == 2
    # What is not there is a zero.
    assert result['federator_drift{kind="name_clash",severity="medium",source=""}'] == 0


def test_calls_to_catalogs_only_grow(api: Api, busy: Index) -> None:
    result = metrics(api)
    of = 'operation="describe_table",source="lake"'
    name = "federator_catalog_call_seconds"
    buckets = [result[f'{name}_bucket{{le="{le}",{of}}}'] for le in ("0.005", "0.025", "0.1", "300", "+Inf")]
    assert buckets == [1, 1, 3, 3, 4]
    assert result[f"{name}_count{{{of}}}"] == 4
    assert result[f"{name}_sum{{{of}}}"] == pytest.approx(1000.103)
    assert result[f'federator_catalog_errors_total{{code="17",{of}}}'] == 1
    # Another process, and this one's own catalogs: all of them are added up.
    more = CallMeter()
    more.record_call("lake", "describe_table", 0.2)
    call_metrics.flush_meter(busy, more)
    PROCESS_METER.record_call("lake", "describe_table", 0.2)
    assert metrics(api)[f"{name}_count{{{of}}}"] == 6
    assert metrics(api)[f"{name}_count{{{of}}}"] == 6


def test_leases_and_notifications(api: Api, busy: Index) -> None:
    with acquire_lease(busy, "source:lake"), acquire_lease(busy, "run:1"):
        result = metrics(api)
    assert result['federator_lease_held{lease="source:lake"}'] == 1
    assert result['federator_lease_taken_total{lease="source:lake"}'] >= 2
    assert not any("run:" in name for name in result)
    assert metrics(api)['federator_lease_held{lease="source:lake"}'] == 0
    assert result['federator_notifications{channel="ops",state="queued"}'] == 1
    assert result['federator_notifications{channel="ops",state="dead"}'] == 0
    assert result["federator_notices_waiting"] == 1


def test_a_plan_that_was_applied_leaves_nothing_pending(api: Api, busy: Index) -> None:
    with busy.write() as connection:
        plans.record_decision(connection, "d2", "applied", "ann")
    result = metrics(api)
    assert not any(name.startswith("federator_mirror_pending_changes") for name in result)
    assert result['federator_mirror_plan_held{mirror="m"}'] == 0


def test_the_audit(api: Api, busy: Index) -> None:
    waiting = metrics(api)
    assert waiting["federator_audit_unsealed_events"] == 2
    assert (waiting["federator_audit_events"], waiting["federator_audit_unanchored_events"]) == (0, 0)
    audit.seal_pending(busy)
    sealed = metrics(api)
    assert sealed["federator_audit_unsealed_events"] == 0
    assert sealed["federator_audit_events"] == sealed["federator_audit_unanchored_events"] == 2
    record_head(busy, None)
    with busy.write() as connection:
        audit_log.mark_anchored(connection, 2)
    assert metrics(api)["federator_audit_unanchored_events"] == 0


def test_the_worker(api: Api, index: Index) -> None:
    assert metrics(api)["federator_worker_leading"] == 0
    with acquire_lease(index, "scheduler"):
        assert metrics(api)["federator_worker_leading"] == 1
    assert metrics(api)["federator_worker_leading"] == 0


def test_wants_the_token_like_every_route(
    index: Index, settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "s3cret")
    app = create_app(settings_of(serve={"token": "${TOKEN}"}))
    assert Api(app).get("/metrics").status_code == 401
    assert Api(app, {"Authorization": "Bearer s3cret"}).get("/metrics").status_code == 200


def test_no_label_holds_a_secret_or_a_table(api: Api, busy: Index) -> None:
    text = api.get("/metrics").text
    for planted in ("hunter2", "t0ken", "orders"):
        assert planted not in text


def test_openmetrics_on_request(api: Api) -> None:
    response = api.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert response.headers["content-type"].startswith("application/openmetrics-text")
    assert response.text.endswith("# EOF\n")
    assert api.get("/metrics").headers["content-type"].startswith("text/plain")


def test_without_an_index_is_a_problem(api: Api, index: Index) -> None:
    with index.write() as connection:
        connection.exec_driver_sql("DROP TABLE source")
    assert api.get("/metrics").status_code == 503


# deploy/


def names(text: str) -> set[str]:
    return set(re.findall(r"\bfederator_[a-z_]+", text))


def expressions(dashboard: Any) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]


def test_the_dashboard_and_the_alerts_use_metrics_that_are_there(api: Api, busy: Index) -> None:
    existing = {name.partition("{")[0] for name in metrics(api)}
    dashboard = json.loads((DEPLOY / "grafana" / "federator.json").read_text())
    alerts = (DEPLOY / "prometheus" / "alerts.yaml").read_text()
    shown, watched = names("\n".join(expressions(dashboard))), names(alerts)
    assert shown - existing == set()
    assert watched - existing == set()
    # Nothing is counted that nobody looks at.
    assert existing - shown - watched == {"federator_build_info"}


def test_the_dashboard_is_one(api: Api) -> None:
    dashboard = json.loads((DEPLOY / "grafana" / "federator.json").read_text())
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids)) >= 8
    assert all(panel["title"] and panel["gridPos"]["w"] for panel in dashboard["panels"])
    assert all(expr.count("(") == expr.count(")") for expr in expressions(dashboard))
