"""Configuration changes are events of the run that first read them, and no event contains a secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from federator.audit.export import export
from federator.service import Federator
from federator.settings import parse_settings
from federator.store import audit_log

LAKE = {"impl": "federator.testing:CONNECTOR", "store": "audit-lake"}


def run(folder: Path, **raw: Any) -> Federator:
    """One run with a configuration, over the folder's index."""
    made = Federator.open(parse_settings(raw, folder / "federator.toml"))
    made.apply([], actor="ann")
    return made


def changes(federator: Federator) -> list[dict[str, Any]]:
    found = [json.loads(row.event) for row in audit_log.iter_events(federator.index)]
    return [event for event in found if event["kind"] == "config_changed"]


def test_is_recorded_once_by_the_run_that_saw_it(tmp_path: Path) -> None:
    run(tmp_path, sources={"lake": LAKE})
    run(tmp_path, sources={"lake": LAKE})
    made = run(tmp_path, sources={"lake": {**LAKE, "deadline": "5m"}}, serve={"port": 9000})
    first, second = changes(made)
    assert (first["detail"]["before"], first["subject"], first["actor"]) == (None, "configuration", "ann")
    assert first["detail"]["changed"]["sources.lake.impl"] == [None, "federator.testing:CONNECTOR"]
    assert second["detail"]["before"] == first["detail"]["after"] != second["detail"]["after"]
    assert second["detail"]["changed"] == {"serve.port": [None, "9000"], "sources.lake.deadline": [None, "300.0"]}
    assert second["run_id"] != first["run_id"]


def test_a_key_that_was_removed_is_recorded(tmp_path: Path) -> None:
    run(tmp_path, sources={"lake": LAKE})
    made = run(tmp_path)
    assert changes(made)[-1]["detail"]["changed"]["sources.lake.properties.store"] == ["audit-lake", None]


def test_secrets_are_shown_as_their_references_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_TOKEN", "planted-1")
    monkeypatch.setenv("SERVE_TOKEN", "planted-2")
    clear = {"spark.hadoop.fs.s3a.secret.key": "planted-3", "spark.x": "1"}
    lake = {**LAKE, "storage": {"secret_access_key": "${LAKE_TOKEN}"}}
    raw: dict[str, Any] = {"sources": {"lake": lake}, "serve": {"token": "${SERVE_TOKEN}"}, "spark": {"conf": clear}}
    made = run(tmp_path, **raw)
    changed = changes(made)[0]["detail"]["changed"]
    assert changed["sources.lake.properties.storage.secret_access_key"] == [None, "${LAKE_TOKEN}"]
    assert changed["serve.token"] == [None, "${SERVE_TOKEN}"]
    assert changed["spark.conf.spark.hadoop.fs.s3a.secret.key"] == [None, "(masked)"]
    assert changed["spark.conf.spark.x"] == [None, "1"]
    text = "".join(row.event for row in audit_log.iter_events(made.index))
    assert "planted" not in text


def test_secrets_in_what_was_written_are_masked_before_they_are_sealed(tmp_path: Path) -> None:
    made = run(tmp_path)
    before = {"properties": {"aws.secret_access_key": "planted-1", "team": "x"}, "doc": None}
    detail = {"change": {"before": before}, "token": "planted-2", "list": [{"password": "planted-3"}]}
    with made.index.write() as connection:
        audit_log.append_event(connection, "write", actor="a", run_id=None, subject="s", detail=detail)
        (text,) = [text for _, text in audit_log.list_unsealed(connection)]
    assert "planted" not in text
    assert json.loads(text)["detail"]["change"]["before"]["properties"] == {"aws.secret_access_key": "(masked)", "team": "x"}
    made.apply([])
    export(made.index, tmp_path / "export")
    assert not any(b"planted" in path.read_bytes() for path in (tmp_path / "export").iterdir())
