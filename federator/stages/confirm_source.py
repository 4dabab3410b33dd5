"""Confirm a source's new identity: show what is unconfirmed and which ledger rows it concerns, then accept it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from federator.connector import Catalog, IdentityChanged, StateError
from federator.model import Record, parent_path, parse_path_key
from federator.model.audit_kinds import AuditKind
from federator.planning.identity import Accepted, IdentityReading, can_rebind, judge_confirmed_identity
from federator.planning.ledger import OwnedObject
from federator.registry import open_catalog
from federator.settings import Settings
from federator.stages.context import LEASE_WAIT_SECONDS
from federator.store import Index, audit_log, identities, ledger, records
from federator.store.leases import acquire_lease


@dataclass
class Confirmation:
    """A source's identities: ``accepted`` ones by scope, and ``unconfirmed`` ones as pairs of scope and value.

    ``entries`` are the ledger's rows whose origin or target is the source. ``rebound`` are the target paths whose native id was
    replaced. It is empty until the source is ``confirmed``.
    """

    source: str
    accepted: Accepted
    unconfirmed: Sequence[tuple[str, str]]
    entries: Sequence[OwnedObject]
    rebound: list[str] = field(default_factory=list)
    confirmed: bool = False


def read_pending(index: Index, source: str) -> Confirmation:
    """Return what a confirmation of a source would accept, and the ledger rows that it concerns."""
    with index.read() as connection:
        entries = ledger.list_entries_of_source(connection, source)
        accepted, unconfirmed = identities.get_accepted(connection, source), identities.list_unconfirmed(connection, source)
    return Confirmation(source, accepted, unconfirmed, entries)


def confirm(index: Index, settings: Settings, source: str, *, actor: str) -> Confirmation:
    """Accept the unconfirmed identities of a source, forget its misses, and rebind the ledger rows whose objects are intact.

    No plan is approved. Raise StateError if no identity is unconfirmed, IdentityChanged if a third catalog responds, and
    CatalogError if the source cannot be read. In these cases nothing is accepted.
    """
    with acquire_lease(index, f"source:{source}", wait=LEASE_WAIT_SECONDS) as lease:
        confirmation = read_pending(index, source)
        if not confirmation.unconfirmed:
            raise StateError(
                f"no identity of {source} waits for a confirmation", hint="list unconfirmed identities: federator doctor"
            )
        with open_catalog(settings.source(source).spec) as catalog:
            rebound = list(
                iter_intact_entries(
                    catalog,
                    confirmation.accepted,
                    confirmation.unconfirmed,
                    confirmation.entries,
                    settings.instance.id or "",
                    partial(_find_indexed, index),
                )
            )
        with index.write() as connection:
            lease.require_held(connection)
            identities.confirm(connection, source, actor)
            for entry, record in rebound:
                ledger.rebind(connection, entry, record.native_id)
            detail = {
                "accepted": [list(pair) for pair in confirmation.unconfirmed],
                "rebound": [entry.target_path for entry, _ in rebound],
            }
            audit_log.append_event(
                connection, AuditKind.SOURCE_CONFIRMED, actor=actor, run_id=None, subject=source, detail=detail
            )
        confirmation.rebound = [entry.target_path for entry, _ in rebound]
        confirmation.confirmed = True
    return confirmation


def iter_intact_entries(
    catalog: Catalog,
    accepted: Accepted,
    unconfirmed: Sequence[tuple[str, str]],
    entries: Iterable[OwnedObject],
    instance: str,
    indexed: Callable[[OwnedObject], Record | None],
) -> Iterator[tuple[OwnedObject, Record]]:
    """Observe the ledger's ``entries`` in a catalog, through a connection whose identity is being confirmed.

    Yield the entries whose objects are intact, with the object. ``indexed`` returns the index's record at the target of an entry.
    Raise IdentityChanged if a third catalog responds.
    """
    declared = [entry for entry in entries if entry.target_source == catalog.source]
    reading = IdentityReading(catalog.identity({parent_path(parse_path_key(entry.target_path)) for entry in declared}))
    verdict = judge_confirmed_identity(catalog.source, accepted, unconfirmed, reading)
    if verdict.problem is not None:
        raise IdentityChanged(verdict.problem)
    for entry in declared:
        path = parse_path_key(entry.target_path)
        record = catalog.observe(path).record if entry.is_table else catalog.find_namespace(path)
        if record is not None and can_rebind(entry, record, instance, indexed(entry)):
            yield entry, record


def _find_indexed(index: Index, entry: OwnedObject) -> Record | None:
    source, path = entry.target_source, parse_path_key(entry.target_path)
    with index.read() as connection:
        find = records.find_table if entry.is_table else records.find_namespace
        return find(connection, source, path)
