"""What tests of the index share: content written the way that runs write it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from federator.index import Index, revisions
from federator.index.leases import hold
from federator.index.observed import Observed, publish_observed
from federator.model import NamespaceRecord, Path, Record, TableRecord


def table(source: str, *path: str, **fields: Any) -> TableRecord:
    """A table's record, at a place of its own."""
    return TableRecord(source, path, **({"location": f"s3://lake/{'/'.join(path)}.lance", "native_id": "1"} | fields))


def namespace(source: str, *path: str) -> NamespaceRecord:
    return NamespaceRecord(source, path)


def fill(index: Index, source: str, *records: Record, gone: Sequence[Path] = (), run: str = "run-1") -> int | None:
    """Publishes records, and tables that are gone, as one revision of a source. Needs no Spark."""
    revisions.register(index, source, "memory", "digest")
    now = time.time()
    seen = [Observed(r.path, r, now, isinstance(r, TableRecord)) for r in records]
    seen += [Observed(path, None, now, is_table=True) for path in gone]
    with hold(index, f"source:{source}", wait=10) as lease:
        number = publish_observed(index, lease, source, run, seen)
        with index.write() as connection:
            revisions.set_source(connection, source, {"state": "ok", "crawled_at": now})
    return number
