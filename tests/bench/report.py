"""Reports over an index of a million tables: how long each takes, and the memory of driver, JVM and workers together."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from federator.model import NamespaceRecord, TableRecord
from federator.model.report_kinds import ReportKind
from federator.pipeline import session
from federator.service import Federator
from federator.settings import load_settings
from federator.settings.retention import ReportSettings
from federator.stages.report import ReportSpec
from federator.store import revisions
from federator.store.leases import acquire_lease
from tests.bench.measure import Row, limit, memory, seconds

TABLES, NAMESPACES, OWNERS = 1_000_000, 1_000, 50_000
_KINDS: tuple[ReportKind, ...] = ("inventory", "growth")


def run(directory: Path) -> list[Row]:
    file = directory / "federator.toml"
    file.write_text('[sources.big]\nimpl = "federator.testing:CONNECTOR"\n', encoding="utf-8")
    federator = Federator.open(load_settings(file))
    _fill(federator)
    rows: list[Row] = []
    with memory() as watched:
        for kind in _KINDS:
            took = seconds(lambda: _make(federator, kind))  # noqa: B023
            rows.append(limit(f"report {kind} of {TABLES:,} tables, all formats", took, 300))
    session.stop_session()
    return [*rows, limit("summed PSS of driver, JVM and workers", watched.peak, 4, "GiB")]


def _make(federator: Federator, kind: ReportKind) -> None:
    result = federator.make_report(ReportSpec(kind, ReportSettings(kind=kind)))
    assert result.state == "ok", result.errors
    sizes = {file.name: f"{file.size / 2**20:.1f} MiB" for file in result.reports[0].files}
    print(f"  {kind}: {sizes}", file=sys.stderr)


def _fill(federator: Federator) -> None:
    index = federator.index
    revisions.register_source(index, "big", "memory", "x")
    with acquire_lease(index, "source:big") as lease:
        draft = revisions.begin_draft(index, lease, "big", "bench", time.time())
        revisions.add_records(index, lease, draft, _rows())
        revisions.publish_draft(
            index, lease, draft, added=TABLES, changed=0, removed=0, values={"state": "ok", "crawled_at": time.time()}
        )


def _rows() -> Iterator[tuple[object, ...]]:
    for number in range(NAMESPACES):
        yield revisions.incoming_row(NamespaceRecord("big", (f"db{number:04d}",)))
    for number in range(TABLES):
        path = (f"db{number % NAMESPACES:04d}", f"t{number:07d}")
        yield revisions.incoming_row(
            TableRecord("big", path, f"s3://lake/{path[0]}/{path[1]}.lance", owner=f"team{number % OWNERS}")
        )
