"""Planted secrets are in no audit event, export, log or error."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest

from federator import logs
from federator.audit import seal_pending
from federator.audit.export import export
from federator.connector import SourceSpec
from federator.model import TableRecord, parse_path_key
from federator.planning.changes import Action
from federator.registry import open_catalog
from federator.service import Federator
from federator.settings import parse_settings
from federator.store import audit_log
from tests.adversary.killing import TARGET, Orders, Site, _work
from tests.fixtures.index import new_index

PLANTED = {"fs.s3a.secret.key": "planted-1", "storage.token": "planted-2", "aws-access-key-id": "planted-3", "v": "1"}


def test_secrets_in_the_properties_of_an_adopted_table_are_masked_in_events_and_exports(tmp_path: Path) -> None:
    template = new_index(tmp_path, "template.db")
    template.close()
    location = Site(
        tmp_path, SourceSpec(TARGET, "federator.testing:CONNECTOR", {}), "s3://bucket", template=tmp_path / "template.db"
    )
    world = location.world("w")
    with open_catalog(world.target) as target:
        target.declare_table(
            TableRecord(TARGET, parse_path_key(world.key("s", "theirs")), world._location("theirs"), dict(PLANTED))
        )
        world.changes = [world._altered(target, Action.ADOPT, "theirs")]
    _work(world, Orders())
    with world.index() as index:
        seal_pending(index)
        texts = [row.event for row in audit_log.iter_events(index)]
        export(index, tmp_path / "export")
    (adopted,) = [text for text in texts if '"action":"adopt"' in text]
    assert '"state":"done"' in adopted
    assert "(masked)" in adopted
    assert not any("planted" in text for text in texts)
    assert not any(b"planted" in path.read_bytes() for path in (tmp_path / "export").iterdir())


def test_secrets_of_the_anchor_and_of_sources_are_in_no_event_log_or_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "planted-4")
    source = {"impl": "federator.testing:CONNECTOR", "store": "secrets", "storage": {"token": "${SECRET}"}}
    # Nobody listens there.
    raw = {"sources": {"lake": source}, "audit": {"anchor": "http://127.0.0.1:9/x", "token": "${SECRET}"}}
    stream = io.StringIO()
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    logs.configure(stream=stream)
    federator = Federator.open(parse_settings(raw, tmp_path / "federator.toml"))
    result = federator.apply([])
    assert result.state == "partial"
    assert "does not respond" in stream.getvalue()
    texts = [row.event for row in audit_log.iter_events(federator.index)]
    assert "${SECRET}" in "".join(texts)
    assert "planted" not in "".join((*texts, stream.getvalue(), str(result.errors)))
