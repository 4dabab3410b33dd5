"""The audit chain: events from the outbox are sealed in order, each carrying the digest of the one before."""

from __future__ import annotations

import json
from typing import Any

from federator.index import Connection, Index, audit_log
from federator.model import digest_of

_BATCH = 1000


def seal(index: Index) -> int:
    """Moves every waiting event into the chain; returns how many. One sealer at a time, by the transaction's own lock: a lease would
    outlive a sealer that died, and hold up the end of every run."""
    sealed = 0
    while True:
        with index.write() as connection:
            audit_log.lock_chain(connection)
            batch = seal_batch(connection)
        if not batch:
            return sealed
        sealed += batch


def seal_batch(connection: Connection) -> int:
    """Moves the oldest waiting events into the chain, in the caller's transaction, which holds the chain; returns how many."""
    waiting = audit_log.unsealed(connection, _BATCH)
    seq, previous = audit_log.head(connection)
    rows: list[dict[str, Any]] = []
    for _, text in waiting:
        seq += 1
        row = sealed_row(seq, text, previous)
        previous = row["digest"]
        rows.append(row)
    if rows:
        audit_log.add_sealed(connection, rows, [number for number, _ in waiting])
    return len(rows)


def sealed_row(seq: int, text: str, previous: str) -> dict[str, Any]:
    """An event as a link of the chain. The digest covers its number, its text and the digest before."""
    event = json.loads(text)
    row = {name: event[name] for name in ("at", "kind", "actor", "run_id", "subject")}
    return {**row, "seq": seq, "event": text, "previous": previous, "digest": digest_of([seq, previous, text])}
