"""Publication of observations: objects that were observed one by one become a new revision."""

from __future__ import annotations

import time
from collections.abc import Sequence

from federator.planning.publication import ObservedObject, changed_observations
from federator.store import records, revisions
from federator.store.engine import Index
from federator.store.leases import Lease


def publish_observations(
    index: Index, lease: Lease, source: str, run_id: str, observations: Sequence[ObservedObject]
) -> int | None:
    """Publish the newest observation of each object. Return the revision; None if the index already has this content."""
    with index.read() as connection:
        indexed = {
            item.key: records.find_record(connection, source, item.path, is_table=item.is_table) for item in observations
        }
    known = {key: found.digest if found else None for key, found in indexed.items()}
    changed = changed_observations(observations, known)
    if not changed:
        return None
    draft = revisions.begin_draft(index, lease, source, run_id, time.time())
    closed = [key for key in changed if known[key] is not None]
    revisions.close_records(index, lease, draft, closed)
    rows = [revisions.incoming_row(item.record, item.at) for item in changed.values() if item.record is not None]
    revisions.add_records(index, lease, draft, rows)
    replaced = sum(changed[key].record is not None for key in closed)
    added, removed = len(rows) - replaced, len(closed) - replaced
    revisions.publish_draft(index, lease, draft, added=added, changed=replaced, removed=removed, values={})
    return draft.number
