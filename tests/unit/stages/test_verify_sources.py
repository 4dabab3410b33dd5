"""What verification asks of the index after a crawl."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from federator.lance.inspection import Inspection
from federator.model import TableRecord
from federator.settings import parse_settings
from federator.stages.context import RunContext
from federator.stages.result import RunResult
from federator.stages.source_stores import record_stores
from federator.stages.verify import verify_sources
from federator.store import Index, revisions, runs, stores, verifications
from federator.store.leases import acquire_lease


@pytest.mark.parametrize("other_sources", [1, 20])
def test_after_the_crawl_of_one_source_the_records_of_the_others_are_not_read(
    sqlite_index: Index, tmp_path: Path, other_sources: int
) -> None:
    """Each source has a root of its own, so none of them permits what another one does."""
    names = ["crawled", *(f"other{number}" for number in range(other_sources))]
    sources = {name: {"impl": "dir", "root": str(tmp_path / name)} for name in names}
    for name in names:
        _publish_verified(sqlite_index, name, f"file://{tmp_path}/{name}/t.lance")
    settings = parse_settings({"sources": sources}, tmp_path / "federator.toml")
    statements: list[str] = []

    def record(*arguments: Any) -> None:
        statements.append(arguments[2])

    with runs.run_lifetime(sqlite_index, "crawl") as run:
        context = RunContext(
            settings, sqlite_index, lambda _: None, threading.Event(), run, result := RunResult(run.id, run.kind)
        )
        event.listen(sqlite_index.engine, "before_cursor_execute", record)
        verify_sources(context, ["crawled"])
        event.remove(sqlite_index.engine, "before_cursor_execute", record)
    assert result.errors == {}
    assert len([text for text in statements if "FROM record" in text]) == 2


def test_a_source_whose_secret_cannot_be_read_keeps_its_store(sqlite_index: Index, tmp_path: Path) -> None:
    """Otherwise it would show the facts of equal locations in the default store."""
    secret = tmp_path / "secret"
    secret.write_text("key", encoding="utf-8")
    source = {"impl": "dir", "root": "s3://b/lake", "storage.endpoint": "http://minio:9000"}
    sources = {"lake": {**source, "storage.secret_access_key": f"file:{secret}"}}
    settings = parse_settings({"sources": sources}, tmp_path / "federator.toml")
    for _ in range(2):
        record_stores(sqlite_index, settings)
        with sqlite_index.read() as connection:
            assert stores.read_stores(connection) == {"lake": "minio:9000"}
        secret.unlink(missing_ok=True)


def _publish_verified(index: Index, source: str, location: str) -> None:
    """Publish a source with one table, whose location was inspected after that."""
    revisions.register_source(index, source, "dir", "digest")
    with acquire_lease(index, f"source:{source}") as lease:
        draft = revisions.begin_draft(index, lease, source, "run", time.time())
        revisions.add_records(index, lease, draft, iter([revisions.incoming_row(TableRecord(source, ("t",), location))]))
        revisions.publish_draft(index, lease, draft, added=1, changed=0, removed=0, values={"state": "ok"})
    with index.write() as connection:
        (due,) = verifications.list_due_locations(connection, source, now=time.time(), max_age=600, limit=2)
        verifications.save_inspection(
            connection, Inspection("valid", ""), canonical=due.canonical, location=due.location, through=source, access=""
        )
