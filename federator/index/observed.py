"""Publishing what was seen directly: objects that we wrote or looked at one by one become a revision of their own."""

from __future__ import annotations

import time
from collections.abc import Sequence

from federator.index import records, revisions
from federator.index.engine import Index
from federator.index.leases import Lease
from federator.planning.publication import Observed as Observed
from federator.planning.publication import changed_observations


def publish_observed(index: Index, lease: Lease, source: str, run_id: str, seen: Sequence[Observed]) -> int | None:
    """Publishes the newest look at each object; returns the revision, or None where the index already said so."""
    with index.read() as connection:
        indexed = {look.key: records.get(connection, source, look.path, is_table=look.is_table) for look in seen}
    known = {key: str(row["digest"]) if row else None for key, row in indexed.items()}
    changed = changed_observations(seen, known)
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
