"""The audit chain: events from the outbox are sealed in order, each carrying the digest of the one before."""

from __future__ import annotations

import json
from typing import Any

from federator.index import Index, RowMapping, audit_log
from federator.model import digest_of

_BATCH = 1000


def seal(index: Index) -> int:
    """Moves every waiting event into the chain; returns how many. One sealer at a time, by the transaction's own lock: a lease would
    outlive a sealer that died, and hold up the end of every run."""
    sealed = 0
    while True:
        with index.write() as connection:
            audit_log.lock_chain(connection)
            waiting = audit_log.unsealed(connection, _BATCH)
            if not waiting:
                return sealed
            seq, previous = audit_log.head(connection)
            rows: list[dict[str, Any]] = []
            for _, text in waiting:
                seq += 1
                row = sealed_row(seq, text, previous)
                previous = row["digest"]
                rows.append(row)
            audit_log.add_sealed(connection, rows, [number for number, _ in waiting])
            sealed += len(rows)


def sealed_row(seq: int, text: str, previous: str) -> dict[str, Any]:
    """An event as a link of the chain. The digest covers its number, its text and the digest before."""
    event = json.loads(text)
    row = {name: event[name] for name in ("at", "kind", "actor", "run_id", "subject")}
    return {**row, "seq": seq, "event": text, "previous": previous, "digest": digest_of([seq, previous, text])}


def first_broken(index: Index) -> int | None:
    """The number of the first event that does not fit the chain, or None. An unproven tail is not noticed without an anchor."""
    expected, previous, after = 1, "", 0
    while batch := audit_log.events(index, after=after, limit=_BATCH):
        for row in batch:
            if row["seq"] != expected or not _fits(row, previous):
                return int(row["seq"])
            expected, previous, after = expected + 1, row["digest"], row["seq"]
    return None


def _fits(row: RowMapping, previous: str) -> bool:
    try:
        again = sealed_row(row["seq"], row["event"], previous)
    except (ValueError, KeyError, TypeError):
        # Edited so far that it is no event any more.
        return False
    return all(row[name] == again[name] for name in again)
