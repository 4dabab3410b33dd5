"""Shared parts of the tests of the index: content written in the same way as by runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from federator.model import NamespaceRecord, Path, Record, TableRecord
from federator.planning.ledger import OwnedObject
from federator.store import Index, journal, revisions
from federator.store.leases import acquire_lease
from federator.store.observations import ObservedObject, publish_observations


def table(source: str, *path: str, **fields: Any) -> TableRecord:
    """A table's record, at a place of its own."""
    return TableRecord(source, path, **({"location": f"s3://lake/{'/'.join(path)}.lance", "native_id": "1"} | fields))


def namespace(source: str, *path: str) -> NamespaceRecord:
    return NamespaceRecord(source, path)


def intent(op_id: str, action: str = "declare_table", **more: Any) -> journal.StoredIntent:
    """An intent of the mirror ``m``, with an empty change."""
    fields = {"run_id": "r", "plan": "p", "mirror": "m", "seq": 0, "target_source": "copy", "target_path": "x", "change": {}}
    return journal.StoredIntent(op_id=op_id, action=action, **{**fields, **more})


def owned(origin: str, origin_path: str, target: str, target_path: str | None = None, **more: Any) -> OwnedObject:
    """A table's entry in the ledger of the mirror ``m``, at the same path by default."""
    fields = {"mirror": "m", "is_table": 1, "op_id": "op", "run_id": "r", "target_path": target_path or origin_path}
    return OwnedObject(origin_source=origin, origin_path=origin_path, target_source=target, **{**fields, **more})


def fill(index: Index, source: str, *records: Record, gone: Sequence[Path] = (), run: str = "run-1") -> int | None:
    """Publishes records, and tables that are gone, as one revision of a source. Needs no Spark."""
    revisions.register_source(index, source, "memory", "digest")
    now = time.time()
    seen = [ObservedObject(r.path, r, now, isinstance(r, TableRecord)) for r in records]
    seen += [ObservedObject(path, None, now, is_table=True) for path in gone]
    with acquire_lease(index, f"source:{source}", wait=10) as lease:
        number = publish_observations(index, lease, source, run, seen)
        with index.write() as connection:
            revisions.update_source(connection, source, {"state": "ok", "crawled_at": now})
    return number
