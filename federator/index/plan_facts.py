"""What a plan reads from the index: ``planning.facts.FactsIndex`` in SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from federator.index import datasets, identities, journal, ledger, losses, records
from federator.model import NamespaceRecord, parse_key
from federator.model.rows import namespace_record
from federator.planning.changes import Change
from federator.planning.losses import Loss
from federator.planning.namespaces import MadeNamespace
from federator.planning.rule import MirrorRule


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """Everything as one connection sees it."""

    connection: Connection

    def paths_at(self, source: str, locations: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return records.paths_at(self.connection, source, locations)

    def verified(self, locations: Sequence[str]) -> Mapping[str, str]:
        return {key: str(row["state"]) for key, row in datasets.states(self.connection, locations).items()}

    def namespaces(self, source: str) -> Collection[str]:
        return records.namespaces(self.connection, source)

    def content(self, source: str, namespace: str) -> tuple[NamespaceRecord | None, int]:
        path = parse_key(namespace)
        row = records.get(self.connection, source, path, is_table=False)
        inside = records.children(self.connection, source, path, limit=1)
        return namespace_record(source, dict(row)) if row is not None else None, len(inside)

    def made_namespaces(self, rule: MirrorRule) -> Sequence[MadeNamespace]:
        rows = ledger.of_mirror(self.connection, rule.name)
        made = (row for row in rows if not row["is_table"] and row["target_source"] == rule.target)
        return [MadeNamespace(row["target_path"], row["origin_path"], row["native_id"]) for row in made]

    def destructive_since(self, mirror: str, since: float) -> Sequence[str]:
        return journal.destructive_since(self.connection, mirror, since)

    def dropped_since(self, mirror: str, since: float) -> int:
        return journal.dropped_since(self.connection, mirror, since)

    def unfinished_renames(self, mirror: str, since: float) -> Sequence[Change]:
        return journal.unfinished_renames(self.connection, mirror, since)

    def obstructed(self, mirror: str) -> Collection[str]:
        return journal.obstructed(self.connection, mirror)

    def unconfirmed(self, source: str) -> str | None:
        return identities.unconfirmed(self.connection, source)

    def losses(self, rule: MirrorRule) -> Sequence[Loss]:
        return losses.unapproved(self.connection, rule.name, rule.origin, rule.target)
