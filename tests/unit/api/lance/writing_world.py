"""A writer over a catalog in memory, for tests of direct writes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path as FilePath
from typing import Any

import lance_namespace as lance
from sqlalchemy import select

from federator.apply import direct_writes
from federator.apply.direct_writes import DirectWriter, WriteRequest
from federator.apply.publication import AffectedObject
from federator.lance.facade import CatalogNamespace
from federator.planning.publication import ObservedObject
from federator.settings import Settings, parse_settings
from federator.store import Index, audit_log, pending_publications, records
from federator.store import tables as t
from federator.testing import get_memory_store
from federator.testing.contract import unique_name
from tests.fixtures.index import new_index
from tests.fixtures.index_content import fill


class World:
    """A writer over a catalog in memory and an index of its own."""

    def __init__(self, directory: FilePath, index: Index | None = None, **mem: Any) -> None:
        self.name = unique_name("writing")
        self.settings: Settings = parse_settings(
            {"sources": {"mem": {"impl": "federator.testing:CONNECTOR", "store": self.name, **mem}}},
            directory / "federator.toml",
        )
        self.index = index or new_index(directory)
        fill(self.index, "mem")
        get_memory_store(self.name).add_namespace(("ns",))
        self.writer = DirectWriter(self.index, self.settings)

    def declare(self, name: str, *, actor: str = "ann", call: Any = None) -> direct_writes.WriteResult[Any]:
        order = WriteRequest(
            actor, "mem", "declare_table", ("ns", name), [AffectedObject(("ns", name))], {"secret_key": "hunter2"}
        )

        def declare(facade: CatalogNamespace) -> Any:
            return facade.declare_table(lance.DeclareTableRequest(id=["ns", name]))

        return self.writer.write(order, call or declare)

    def has(self, *path: str, is_table: bool = True) -> bool:
        with self.index.read() as connection:
            return records.find_record(connection, "mem", path, is_table=is_table) is not None

    def pending(self, *path: str) -> ObservedObject | None:
        with self.index.read() as connection:
            return pending_publications.find_pending(connection, "mem", path, is_table=True)

    def journal(self) -> list[tuple[str, str, str | None]]:
        j = t.journal.c
        with self.index.read() as connection:
            rows = connection.execute(select(j.target_path, j.state, j.code).order_by(j.intent_at))
            return [tuple(row) for row in rows]

    def audit(self) -> list[dict[str, Any]]:
        return [{**asdict(event), "detail": json.loads(event.event)["detail"]} for event in audit_log.iter_events(self.index)]
