"""Planted secrets are in no event, export or log, whatever way they come in."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest

from federator import logs
from federator.audit import seal
from federator.audit.export import export
from federator.connector import SourceSpec
from federator.index import audit_log, migrate, open_index
from federator.model import TableRecord, parse_key
from federator.planning.changes import Action
from federator.registry import open_catalog
from federator.settings import parse
from federator.sync import Federator
from tests.faults.killing import TARGET, Orders, Place, _work

PLANTED = {"fs.s3a.secret.key": "planted-1", "storage.token": "planted-2", "aws-access-key-id": "planted-3", "v": "1"}


def test_in_the_parameters_of_a_table_that_is_changed(tmp_path: Path) -> None:
    template = open_index(f"sqlite:///{tmp_path}/template.db")
    migrate.upgrade(template)
    template.close()
    place = Place(
        tmp_path, SourceSpec(TARGET, "federator.testing:CONNECTOR", {}), "s3://bucket", template=tmp_path / "template.db"
    )
    world = place.world("w")
    with open_catalog(world.target) as target:
        target.declare_table(TableRecord(TARGET, parse_key(world.key("s", "theirs")), world._place("theirs"), dict(PLANTED)))
        world.changes = [world._altered(target, Action.ADOPT, "theirs")]
    _work(world, Orders())
    with world.index() as index:
        seal(index)
        texts = [row["event"] for row in audit_log.every_event(index)]
        export(index, tmp_path / "export")
    (adopted,) = [text for text in texts if '"action":"adopt"' in text]
    assert '"state":"done"' in adopted
    assert "(masked)" in adopted
    assert not any("planted" in text for text in texts)
    assert not any(b"planted" in path.read_bytes() for path in (tmp_path / "export").iterdir())


def test_of_the_anchor_and_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "planted-4")
    source = {"impl": "federator.testing:CONNECTOR", "store": "secrets", "storage": {"token": "${SECRET}"}}
    # Nobody listens there.
    raw = {"sources": {"lake": source}, "audit": {"anchor": "http://127.0.0.1:9/x", "token": "${SECRET}"}}
    stream = io.StringIO()
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    logs.configure(stream=stream)
    made = Federator.open(parse(raw, tmp_path / "federator.toml"))
    result = made.apply([])
    assert result.state == "partial"
    assert "does not answer" in stream.getvalue()
    texts = [row["event"] for row in audit_log.every_event(made.index)]
    assert "${SECRET}" in "".join(texts)
    assert "planted" not in "".join((*texts, stream.getvalue(), str(result.errors)))
