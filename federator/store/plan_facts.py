"""The facts that a plan reads from the index: ``planning.facts.FactsIndex`` in SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from federator.model import NamespaceRecord, TableRecord, parse_path_key
from federator.planning.journal_lines import JournalLine, Question
from federator.planning.ledger import OwnedObject
from federator.planning.losses import Loss
from federator.store import identities, journal, ledger, losses, records, verifications


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The facts as one connection sees them. ``origin`` is the source whose locations were verified."""

    connection: Connection
    origin: str = ""

    def paths_at(self, source: str, locations: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return records.list_paths_by_location(self.connection, source, locations)

    def verified(self, locations: Sequence[str]) -> Mapping[str, str]:
        declared = ((self.origin, location) for location in locations)
        states = verifications.list_verifications(self.connection, declared)
        return {location: found.state for (_, location), found in states.items()}

    def namespaces(self, source: str) -> Collection[str]:
        return records.list_namespace_keys(self.connection, source)

    def content(self, source: str, namespace: str) -> tuple[NamespaceRecord | None, int]:
        path = parse_path_key(namespace)
        inside = records.list_children(self.connection, source, path, limit=1)
        return records.find_namespace(self.connection, source, path), len(inside)

    def namespace_entries(self, mirror: str) -> Sequence[OwnedObject]:
        return ledger.list_namespaces(self.connection, mirror)

    def ledger_sides(self, mirror: str) -> Collection[tuple[str, str]]:
        return ledger.list_sides(self.connection, mirror)

    def owned_tables(self, mirror: str, target: str, paths: Sequence[str]) -> Collection[str]:
        return ledger.list_owned_tables(self.connection, mirror, target, paths)

    def lines(self, mirror: str, question: Question, since: float) -> Iterable[JournalLine]:
        return journal.iter_lines(self.connection, mirror, question, since)

    def table(self, source: str, path: str) -> TableRecord | None:
        return records.find_table(self.connection, source, parse_path_key(path))

    def unconfirmed(self, source: str) -> str | None:
        return identities.find_unconfirmed_problem(self.connection, source)

    def accepted_revisions(self, mirror: str) -> Mapping[tuple[str, str], int]:
        return losses.read_accepted_revisions(self.connection, mirror)

    def losses(self, source: str, revision: int) -> Sequence[Loss]:
        return losses.list_losses(self.connection, source, revision)
