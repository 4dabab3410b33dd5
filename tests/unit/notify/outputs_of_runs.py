"""Outputs of real runs: logs, notifications, metrics, traces and lineage. None of them holds a secret.

Secrets of all kinds are planted wherever the configuration accepts one. The catalogs repeat each request, headers included, in their
error texts. The index is PostgreSQL, the runs use Spark, and the receivers are servers on this machine.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

import pytest
import structlog
from openlineage.client import event_v2
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import make_url, select

from federator import logs
from federator.api.app import create_app
from federator.audit.export import export
from federator.audit.keys import generate_key_pair
from federator.connector.options import resolve_reference
from federator.notify import deliver_due
from federator.service import Federator
from federator.settings import Settings, parse_settings
from federator.settings.retention import ReportSettings
from federator.stages.report import ReportSpec
from federator.stages.result import RunResult
from federator.store import Index, call_metrics, migrations, open_index
from federator.store import tables as t
from federator.testing import MemoryStore
from tests.fixtures.postgres import _execute
from tests.unit.api.conftest import Api
from tests.unit.notify.receiver import Receiver, receiving

MEMORY = "federator.testing:CONNECTOR"
SECRETS = {
    name: f"pl4nted-{name.lower().replace('_', '-')}-0123456789"
    for name in (
        "UNITY_TOKEN", "POLARIS_SECRET", "GLUE_ID", "GLUE_KEY", "REST_KEY", "STORAGE_KEY", "SERVE_TOKEN", "ANCHOR_TOKEN", "HOOK_SECRET",
        "HOOK_TOKEN", "MAIL_PASSWORD", "OTLP_TOKEN", "LINEAGE_TOKEN", "INDEX_PASSWORD",
    )
}  # fmt: skip

# Spark's workers have the environment that their session began with, and any test may begin it: this is set before all of them.
os.environ["INDEX_PASSWORD"] = SECRETS["INDEX_PASSWORD"]


class Echo(BaseHTTPRequestHandler):
    """A catalog that denies everything, and repeats in every field what it was sent."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0) or 0)).decode("utf-8", "replace")
        message = f"denied: {self.requestline} {dict(self.headers)} {body}"
        answer = {
            "error": {"message": message, "type": "ForbiddenException", "code": 403},
            "message": message,
            "error_code": "DENIED",
        }
        text = json.dumps(
            {**answer, "__type": "AccessDeniedException", "detail": message, "error_description": message}
        ).encode()
        self.send_response(403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        pass


@dataclass
class RunOutputs:
    """All outputs of three runs, as their receivers got them."""

    settings: Settings
    index: Index
    hook: Receiver
    otlp: Receiver
    lineage: Receiver
    results: list[RunResult] = field(default_factory=list)
    log: str = ""
    scrape: str = ""
    private_key: str = ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.hook.bodies]

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.splitlines()]

    def spans(self, run: RunResult) -> list[Span]:
        """Return the spans of one run's trace."""
        found = []
        for body in self.otlp.bodies:
            request = ExportTraceServiceRequest.FromString(body)
            found += [span for of in request.resource_spans for scope in of.scope_spans for span in scope.spans]
        (root,) = [span for span in found if attribute(span, "federator.run") == run.run_id]
        return [span for span in found if span.trace_id == root.trace_id]

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.lineage.bodies]


def attribute(span: Span, key: str) -> str:
    return next((attribute.value.string_value for attribute in span.attributes if attribute.key == key), "")


@pytest.fixture(scope="module")
def outputs(spark: None, postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunOutputs]:
    directory = tmp_path_factory.mktemp("outputs")
    _execute(postgres_url, "DROP DATABASE IF EXISTS run_outputs WITH (FORCE)")
    _execute(postgres_url, "CREATE DATABASE run_outputs")
    url = make_url(postgres_url).set(database="run_outputs").render_as_string(hide_password=False)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with ExitStack() as opened, pytest.MonkeyPatch.context() as patched:
        for name, value in SECRETS.items():
            patched.setenv(name, value)
            (directory / name).write_text(value)
        echo = opened.enter_context(_echoing())
        hook, otlp, lineage, anchor = (opened.enter_context(receiving()) for _ in range(4))
        stream = io.StringIO()
        logs.configure(json=True, level="DEBUG", stream=stream)
        generate_key_pair(directory / "audit.pem")
        settings = _settings(directory, url, echo, hook, otlp, lineage, anchor)
        index = open_index(resolve_reference(settings.index.url, where="url"))
        migrations.upgrade_schema(index)
        written = RunOutputs(settings, index, hook, otlp, lineage, private_key=(directory / "audit.pem").read_text())
        a, b = (MemoryStore(str(directory / f"{name}.json")) for name in "ab")
        for name in ("orders", "items", "gone"):
            a.add_table(("sales", name), f"file:///nowhere/{name}.lance")
        a.add_namespace(("hr",))
        b.add_namespace(("sales",))
        federator = Federator.open(settings, create=False)

        def run() -> None:
            written.results.append(federator.sync(["m"]))
            deliver_due(index, settings, at_once=True)

        b.faults("refuse:sales$items=15")
        run()
        b.faults("")
        a.faults("deny:hr")
        anchor.answers = [(500, {})] * 20
        run()
        a.faults("")
        anchor.answers = []
        written.results.append(federator.crawl())
        deliver_due(index, settings, at_once=True)
        written.log = stream.getvalue()
        api = Api(create_app(settings), {"Authorization": f"Bearer {SECRETS['SERVE_TOKEN']}"})
        response = api.get("/metrics")
        assert response.status_code == 200, response.text
        written.scrape = response.text
        yield written
        federator.index.close()
        index.close()
    root.handlers[:], root.level = handlers, level
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()
    _execute(postgres_url, "DROP DATABASE IF EXISTS run_outputs WITH (FORCE)")


def _settings(
    directory: Path, url: str, echo: str, hook: Receiver, otlp: Receiver, lineage: Receiver, anchor: Receiver
) -> Settings:
    parsed = make_url(url)
    placed = f"postgresql+psycopg://{parsed.username}:${{INDEX_PASSWORD}}@{parsed.host}:{parsed.port}/{parsed.database}"
    memory = {"impl": MEMORY, "storage": {"secret_access_key": f"file:{directory}/STORAGE_KEY"}}
    raw = {
        "instance": {"id": "one", "fingerprint": "run_outputs"},
        "index": {"url": placed if parsed.password is None else url},
        "serve": {"token": "${SERVE_TOKEN}"},
        "audit": {"key": f"file:{directory}/audit.pem", "anchor": anchor.url, "token": "${ANCHOR_TOKEN}"},
        "telemetry": {"endpoint": otlp.url, "token": "${OTLP_TOKEN}"},
        "lineage": {"url": lineage.url, "token": "${LINEAGE_TOKEN}"},
        "notify": {
            "ops": {
                "kind": "webhook", "url": f"{hook.url}/ops", "secret": "${HOOK_SECRET}", "token": "${HOOK_TOKEN}",
                "min_severity": "info", "group_by": ["event", "source"],
            },
            "mail": {
                "kind": "smtp", "host": "127.0.0.1", "port": 9, "from": "a@example.com", "to": ["b@example.com"],
                "username": "ann", "password": "${MAIL_PASSWORD}",
            },
        },
        "sources": {
            "a": {**memory, "file": f"{directory}/a.json"},
            "b": {**memory, "file": f"{directory}/b.json"},
            "unity": {
                "impl": "unity", "endpoint": echo, "catalog": "main", "auth_token": f"file:{directory}/UNITY_TOKEN", "max_retries": 0,
            },
            "polaris": {
                "impl": "polaris", "endpoint": echo, "client_id": "ann", "client_secret": f"file:{directory}/POLARIS_SECRET",
                "max_retries": 0,
            },
            "glue": {
                "impl": "glue", "endpoint": echo, "region": "eu-west-1", "access_key_id": f"file:{directory}/GLUE_ID",
                "secret_access_key": f"file:{directory}/GLUE_KEY",
            },
            "rest": {"impl": "rest", "rest": {"uri": echo, "api_key": f"file:{directory}/REST_KEY"}},
        },
        "mirrors": {"m": {"from": "a", "to": "b"}},
    }  # fmt: skip
    return parse_settings(raw, directory / "federator.toml")


@contextmanager
def _echoing() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_every_run_is_in_its_state(outputs: RunOutputs) -> None:
    assert [result.state for result in outputs.results] == ["failed", "partial", "partial"], [
        (result.errors, [plan.refusals for plan in result.plans]) for result in outputs.results
    ]


def test_each_event_is_in_one_notification(outputs: RunOutputs) -> None:
    counts = Counter[str]()
    for message in outputs.messages:
        counts.update(message["counts"])
    # unity, polaris, glue and rest
    assert counts["source_failed"] == 4
    assert counts["source_partial"] == counts["source_recovered"] == 1
    assert counts["write_failed"] == 1
    assert (counts["run_failed"], counts["run_partial"]) == (1, 2)
    assert counts["audit_unsealed"] >= 1
    assert counts["drift_found"] >= 1
    write = next(first for message in outputs.messages for first in message["first"] if first["event"] == "write_failed")
    assert (write["subject"], write["mirror"], write["run"]) == ("b$sales$items", "m", outputs.results[0].run_id)


def test_each_run_is_one_trace(outputs: RunOutputs) -> None:
    first, *_ = outputs.results
    spans = outputs.spans(first)
    names = Counter(span.name for span in spans)
    by_id = {span.span_id: span for span in spans}
    assert names["run sync"] == names["crawl a"] == names["crawl b"] == names["plan m"] == names["apply m"] == 1
    assert names["b declare_table"] == 3
    (root,) = [span for span in spans if not span.parent_span_id]
    assert root.name == "run sync"

    def above(span: Span) -> list[str]:
        found = []
        while span.parent_span_id:
            span = by_id[span.parent_span_id]
            found.append(span.name)
        return found

    # Threads and workers included: everything hangs below the run.
    declared = [span for span in spans if span.name == "b declare_table"]
    assert {tuple(above(span)) for span in declared} == {("apply m", "run sync")}
    assert all(span.kind == Span.SPAN_KIND_CLIENT for span in declared)
    assert sorted(span.status.code for span in declared) == [0, 0, Status.STATUS_CODE_ERROR]
    read = [span for span in spans if span.name.startswith("read a ")]
    assert {span.name for span in read} == {"read a /", "read a hr", "read a sales"}
    assert {tuple(above(span)) for span in read} == {("crawl a", "run sync")}
    assert all(root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano for span in read)
    assert len({span.trace_id for run in outputs.results for span in outputs.spans(run)}) == len(outputs.results)


def test_each_mirror_run_emits_lineage(outputs: RunOutputs) -> None:
    events = outputs.events()
    assert [event["eventType"] for event in events] == ["START", "FAIL", "START", "COMPLETE"]
    start, failed, again, complete = events
    assert start["run"]["runId"] == failed["run"]["runId"] != again["run"]["runId"] == complete["run"]["runId"]
    assert {event["job"]["namespace"] + "/" + event["job"]["name"] for event in events} == {"one/mirror.m"}
    assert sorted(each["name"] for each in failed["outputs"]) == ["/nowhere/gone.lance", "/nowhere/orders.lance"]
    assert {each["namespace"] for each in (*failed["inputs"], *failed["outputs"])} == {"file"}
    assert "1 of 3 changes failed" in failed["run"]["facets"]["errorMessage"]["message"]
    (output,) = complete["outputs"]
    assert output["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "CREATE"
    assert output["facets"]["symlinks"]["identifiers"] == [
        {"namespace": "federator://one", "name": "b$sales$items", "type": "TABLE"}
    ]
    for event in events:
        # The client's own models take each of them apart and check what they hold: ids, times, URIs.
        rebuilt = event_v2.RunEvent(
            eventType=event_v2.RunState[event["eventType"]], eventTime=event["eventTime"], producer=event["producer"],
            run=event_v2.Run(event["run"]["runId"]), job=event_v2.Job(event["job"]["namespace"], event["job"]["name"]),
            inputs=[event_v2.InputDataset(each["namespace"], each["name"]) for each in event["inputs"]],
            outputs=[event_v2.OutputDataset(each["namespace"], each["name"]) for each in event["outputs"]],
        )  # fmt: skip
        assert rebuilt.schemaURL == event["schemaURL"]
    assert outputs.lineage.received[0].headers["Authorization"] == f"Bearer {SECRETS['LINEAGE_TOKEN']}"


def test_every_line_of_a_run_is_bound_to_it(outputs: RunOutputs) -> None:
    lines = outputs.lines
    ids = {result.run_id for result in outputs.results}
    assert {line["run"] for line in lines if "run" in line} == ids
    spark = [line for line in lines if line["logger"].startswith("py4j")]
    assert {line["source"] for line in spark if "source" in line} >= {"a", "b", "unity", "glue"}
    assert {line["mirror"] for line in spark if "mirror" in line} == {"m"}
    # Of a thread that reads a source, no line is without its run.
    assert all(line.get("run") in ids for line in lines if "source" in line)


def test_calls_are_counted_where_they_are_made(outputs: RunOutputs) -> None:
    with outputs.index.read() as connection:
        found = {
            (latency.source, latency.operation): latency.cumulative[-1] for latency in call_metrics.list_latencies(connection)
        }
        errors = call_metrics.count_errors(connection)
    # Three crawls: one plan of shards each, and a shard for the root and each namespace.
    assert (found["a", "shards"], found["a", "read"]) == (3, 3 * 3)
    assert found["b", "declare_table"] == 4
    assert errors["b", "declare_table", "15"] == 1
    assert errors["a", "read", "15"] == 1
    assert {source for source, _, _ in errors} == {"a", "b", "unity", "polaris", "glue", "rest"}, errors


def test_metrics_show_them(outputs: RunOutputs) -> None:
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(outputs.scrape)
        for sample in family.samples
    }
    of = (("operation", "read"), ("source", "a"))
    assert samples["federator_catalog_call_seconds_count", of] == 9
    assert samples["federator_catalog_call_seconds_bucket", (("le", "+Inf"), *of)] == 9
    code = (("code", "15"), ("operation", "declare_table"), ("source", "b"))
    assert samples["federator_catalog_errors_total", code] == 1
    assert samples["federator_lease_taken_total", (("lease", "mirror:m"),)] >= 2
    assert samples["federator_lease_held", (("lease", "mirror:m"),)] == 0
    assert samples["federator_drift", (("kind", "missing"), ("severity", "high"), ("source", "a"))] >= 3
    assert samples["federator_notifications", (("channel", "mail"), ("state", "queued"))] >= 1


def test_no_secret_is_in_any_output(outputs: RunOutputs, tmp_path: Path) -> None:
    assert outputs.private_key.startswith("-----BEGIN PRIVATE KEY-----")
    export(outputs.index, tmp_path / "export")
    federator = Federator.open(outputs.settings, create=False)
    reports = [
        federator.make_report(ReportSpec(kind, ReportSettings(kind=kind, formats=("html", "csv", "json"))))
        for kind in ("freshness", "access")
    ]
    federator.index.close()
    assert [report.state for report in reports] == ["ok", "ok"]
    with outputs.index.read() as connection:
        dump = {
            table.name: repr([tuple(row) for row in connection.execute(select(table))]) for table in t.metadata.sorted_tables
        }
    texts = {
        "log": outputs.log,
        "metrics": outputs.scrape,
        "results": repr([(result.errors, result.summary(), result.outcomes) for result in outputs.results]),
        **{f"index {name}": text for name, text in dump.items()},
        **{f"export {path.name}": path.read_bytes().decode("latin-1") for path in (tmp_path / "export").iterdir()},
        **{f"state {path}": path.read_bytes().decode("latin-1") for path in _files(outputs.settings.state_dir)},
    }
    for name, receiver in (("webhook", outputs.hook), ("trace", outputs.otlp), ("lineage", outputs.lineage)):
        texts |= {f"{name} {number}": body.decode("latin-1") for number, body in enumerate(receiver.bodies)}
    assert len(texts) > 30
    assert any(name.endswith(".html") and "denied" in text for name, text in texts.items()), "what catalogs said is in a report"
    assert len(outputs.log) > 10_000
    assert "denied" in dump["source"]
    lines = [line for line in outputs.private_key.splitlines() if not line.startswith("-")]
    planted = {**SECRETS, **{f"key {number}": line for number, line in enumerate(lines)}}
    for name, secret in planted.items():
        encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
        for where, text in texts.items():
            for form in (secret, quote(secret, safe=""), encoded):
                assert form not in text, f"{name} is in {where}: {text[max(0, text.find(form) - 200) : text.find(form)]}"


def test_the_secrets_were_used(outputs: RunOutputs) -> None:
    """A secret that no request used would be absent from the outputs anyway."""
    assert outputs.hook.received[0].headers["Authorization"] == f"Bearer {SECRETS['HOOK_TOKEN']}"
    assert outputs.otlp.received[0].headers["Authorization"] == f"Bearer {SECRETS['OTLP_TOKEN']}"
    errors = outputs.results[-1].sources
    assert all("denied" in str(errors[source].message) for source in ("unity", "glue"))


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()] if directory.exists() else []
