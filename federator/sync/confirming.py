"""Confirming a source's new identity: what waits, what it concerns, and accepting it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from federator.connector import Catalog, IdentityChanged, NamespaceNotFound, StateError
from federator.index import Connection, Index, RowMapping, audit_log, identities, ledger
from federator.index.leases import hold
from federator.model import Record, parent, parse_key
from federator.planning.identity import Accepted, IdentityReading, judge_as_confirmed, rebinds
from federator.registry import open_catalog
from federator.settings import Settings
from federator.sync.work import LEASE_PATIENCE


@dataclass
class Confirmation:
    """A source's identities: those that are ``accepted``, by scope, and those that wait (``seen``, pairs of scope and value).

    ``entries`` are the ledger's rows whose origin or target is the source. ``rebound`` are the target paths whose native id was
    replaced; empty until it was ``confirmed``.
    """

    source: str
    accepted: Accepted
    seen: Sequence[tuple[str, str]]
    entries: Sequence[RowMapping]
    rebound: list[str] = field(default_factory=list)
    confirmed: bool = False


def pending(index: Index, source: str) -> Confirmation:
    """Return what a confirmation of a source would accept, and what it concerns."""
    with index.read() as connection:
        return _pending(connection, source)


def confirm(index: Index, settings: Settings, source: str, *, actor: str) -> Confirmation:
    """Accept the identities of a source that wait, forget its misses, and rebind the ledger's rows whose objects are intact.

    No plan is approved by it. Raise StateError if nothing waits, IdentityChanged if yet another catalog answers now, and CatalogError
    if the source cannot be read: then nothing is accepted.
    """
    with hold(index, f"source:{source}", wait=LEASE_PATIENCE) as lease:
        found = pending(index, source)
        if not found.seen:
            raise StateError(f"no identity of {source} waits for a confirmation", hint="federator doctor shows those that do")
        rebound = list(_intact(settings, found))
        with index.write() as connection:
            lease.check(connection)
            identities.confirm(connection, source, actor)
            for row, record in rebound:
                ledger.rebind(connection, dict(row), record.native_id)
            detail = {"accepted": [list(pair) for pair in found.seen], "rebound": [row["target_path"] for row, _ in rebound]}
            audit_log.append(connection, "source_confirmed", actor=actor, run_id=None, subject=source, detail=detail)
        found.rebound = [row["target_path"] for row, _ in rebound]
        found.confirmed = True
    return found


def _pending(connection: Connection, source: str) -> Confirmation:
    entries = ledger.of_source(connection, source)
    return Confirmation(source, identities.accepted(connection, source), identities.list_seen(connection, source), entries)


def _intact(settings: Settings, found: Confirmation) -> Iterator[tuple[RowMapping, Record]]:
    """Observe what the ledger has in the source, through a connection whose identity is among those that are confirmed."""
    entries = [row for row in found.entries if row["target_source"] == found.source]
    with open_catalog(settings.source(found.source).spec) as catalog:
        reading = IdentityReading(catalog.identity({parent(parse_key(row["target_path"])) for row in entries}))
        verdict = judge_as_confirmed(found.source, found.accepted, found.seen, reading)
        if verdict.problem is not None:
            raise IdentityChanged(verdict.problem)
        for row in entries:
            record = _observe(catalog, row)
            if record is not None and rebinds(dict(row), record, settings.instance.id or ""):
                yield row, record


def _observe(catalog: Catalog, row: RowMapping) -> Record | None:
    path = parse_key(row["target_path"])
    if row["is_table"]:
        return catalog.observe(path).record
    try:
        return catalog.describe_namespace(path)
    except NamespaceNotFound:
        return None
