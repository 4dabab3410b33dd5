"""Traces and lineage are off by default, and the error for a missing extra names it."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from federator.connector import ConfigError
from federator.runtime import spans
from federator.settings import parse_settings
from federator.stages.context import RunContext
from federator.stages.lineage import MAX_EVENT_DATASETS, LineageEmitter, TableFlow, dataset_name
from federator.stages.result import RunResult
from federator.stages.tracing import VARIABLES, trace_run
from federator.store import Index
from federator.store.runs import RunHandle

RUN = RunHandle("r1", "sync", "ann")


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Hides a package that is installed."""

    def hide(package: str) -> None:
        real = builtins.__import__

        def importing(name: str, *rest: Any, **more: Any) -> Any:
            if name.partition(".")[0] == package:
                raise ModuleNotFoundError(name=package)
            return real(name, *rest, **more)

        monkeypatch.setattr(builtins, "__import__", importing)

    return hide


def work(settings: Any, index: Index) -> RunContext:
    return RunContext(settings, index, lambda _: None, threading.Event(), RUN, RunResult("r1", "sync"))


def test_nothing_is_loaded_that_nobody_asked_for() -> None:
    code = (
        "import sys; from federator.service import Federator; import federator.notify; "
        "print([name for name in ('opentelemetry', 'openlineage', 'requests', 'pyspark') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_extra_names_its_install(without: Callable[[str], None], tmp_path: Path, sqlite_index: Index) -> None:
    without("opentelemetry")
    settings = parse_settings({"telemetry": {"endpoint": "http://127.0.0.1:4318"}}, tmp_path / "federator.toml")
    with pytest.raises(ConfigError, match="opentelemetry") as caught, trace_run(settings, RUN):
        pass
    assert caught.value.hint == "pip install 'lance-federator[otel]'"


def test_the_machine_s_variables_do_not_make_a_missing_extra_fatal(
    without: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without("opentelemetry")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    ran = False
    with trace_run(parse_settings({}, tmp_path / "federator.toml"), RUN):
        ran = spans._tracer is None
    assert ran


def test_lineage_without_its_extra(without: Callable[[str], None], tmp_path: Path, sqlite_index: Index) -> None:
    without("openlineage")
    settings = parse_settings({"lineage": {"file": "lineage.jsonl"}}, tmp_path / "federator.toml")
    with pytest.raises(ConfigError) as caught:
        LineageEmitter.from_settings(work(settings, sqlite_index), "m")
    assert caught.value.hint == "pip install 'lance-federator[lineage]'"


def test_lineage_into_a_file_in_several_events(tmp_path: Path, sqlite_index: Index) -> None:
    settings = parse_settings({"lineage": {"file": "lineage.jsonl", "namespace": "prod"}}, tmp_path / "federator.toml")
    emitter = LineageEmitter.from_settings(work(settings, sqlite_index), "m")
    assert emitter is not None
    emitter.emit(
        "COMPLETE",
        [TableFlow(f"a$t{n}", f"s3://b/t{n}", f"b$t{n}", f"s3://b/t{n}", "CREATE") for n in range(2 * MAX_EVENT_DATASETS + 1)],
    )
    events = [json.loads(line) for line in (tmp_path / "lineage.jsonl").read_text().splitlines()]
    assert [(event["eventType"], len(event["outputs"])) for event in events] == [
        ("RUNNING", MAX_EVENT_DATASETS),
        ("RUNNING", MAX_EVENT_DATASETS),
        ("COMPLETE", 1),
    ]
    assert {event["job"]["namespace"] for event in events} == {"prod"}
    assert len({event["run"]["runId"] for event in events}) == 1
    assert len({each["name"] for event in events for each in event["inputs"]}) == 2 * MAX_EVENT_DATASETS + 1


def test_a_lineage_server_that_is_away_stops_nothing(tmp_path: Path, sqlite_index: Index) -> None:
    settings = parse_settings({"lineage": {"url": "http://127.0.0.1:9"}}, tmp_path / "federator.toml")
    emitter = LineageEmitter.from_settings(work(settings, sqlite_index), "m")
    assert emitter is not None
    emitter.emit("START", [])
    assert LineageEmitter.from_settings(work(parse_settings({}, tmp_path / "federator.toml"), sqlite_index), "m") is None


@pytest.mark.parametrize(
    ("location", "namespace", "name"),
    [
        ("s3a://bucket/lake/x.lance/", "s3://bucket", "lake/x.lance"),
        ("gs://bucket/k?x#y%20z", "gs://bucket", "k?x#y%20z"),
        ("/data//x.lance", "file", "/data/x.lance"),
        ("file:///data/ä b", "file", "/data/ä b"),
        ("hdfs://nn:9000/p", "hdfs://nn:9000", "/p"),
        ("abfs://c@acc.dfs.core.windows.net/p/q", "abfss://c@acc.dfs.core.windows.net", "/p/q"),
    ],
)
def test_datasets_are_named_by_where_they_lie(location: str, namespace: str, name: str) -> None:
    assert dataset_name(location) == (namespace, name)
