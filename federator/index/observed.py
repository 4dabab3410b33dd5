"""Publishing what was seen directly: objects that we wrote or looked at one by one become a revision of their own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from federator.index import records, revisions
from federator.index.engine import Index
from federator.index.leases import Lease
from federator.model import Path, Record, path_key


@dataclass(frozen=True, slots=True)
class Observed:
    """One object as a direct look found it at a time; ``record`` is None where it is absent."""

    path: Path
    record: Record | None
    at: float
    is_table: bool


def publish_observed(index: Index, lease: Lease, source: str, run_id: str, seen: Sequence[Observed]) -> int | None:
    """Publishes the newest look at each object; returns the revision, or None where the index already said so."""
    newest = {(int(look.is_table), path_key(look.path)): look for look in seen}
    with index.read() as connection:
        known = {key: records.get(connection, source, look.path, is_table=look.is_table) for key, look in newest.items()}
    changed = {
        key: look
        for key, look in newest.items()
        if (known[key]["digest"] if known[key] else None) != (look.record.digest if look.record else None)  # type: ignore[index]
    }
    if not changed:
        return None
    draft = revisions.begin(index, lease, source, run_id, time.time())
    closed = [key for key in changed if known[key] is not None]
    revisions.close_records(index, lease, draft, closed)
    rows = [revisions.incoming(look.record, look.at) for look in changed.values() if look.record is not None]
    revisions.add_records(index, lease, draft, rows)
    replaced = sum(changed[key].record is not None for key in closed)
    added, removed = len(rows) - replaced, len(closed) - replaced
    revisions.publish(index, lease, draft, added=added, changed=replaced, removed=removed, values={})
    return draft.number
