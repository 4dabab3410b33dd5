"""The journal and the ledger in memory: ``apply.index_journal`` without a database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from federator.apply import Outcome
from federator.apply.leased_journal import LeasedJournal
from federator.apply.port import Intent
from federator.planning.changes import Change
from federator.planning.journal_lines import pending_paths
from federator.planning.rule import MirrorRule
from federator.planning.settlement import ledger_key
from tests.prove.index import Entry, MemoryIndex


@dataclass
class MemoryJournal(LeasedJournal[None]):
    """``LeasedJournal`` over an index in memory."""

    index: MemoryIndex
    rule: MirrorRule
    clock: Callable[[], float]

    def open_intents(self) -> list[Intent]:
        # As they come back from SQL.
        return [replace(i, change=Change.from_json(i.change.to_json())) for i in self.index.open_intents(self.rule.name)]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        yield

    def _store_intent(self, transaction: None, intent: Intent) -> None:
        self.index.journal[intent.op_id] = Entry(intent, self.rule.name, self.clock())

    def _replace_entry(self, transaction: None, change: Change, entry: Mapping[str, Any] | None, *, every_mirror: bool) -> bool:
        ledger, key = self.index.ledger, ledger_key(self.rule, change)
        same = ("target_source", "target_path", "is_table", *(() if every_mirror else ("mirror",)))
        before = [at for at, row in ledger.items() if all(row[column] == key[column] for column in same)]
        for at in before:
            del ledger[at]
        if entry is not None:
            ledger[key["mirror"], key["origin_source"], key["origin_path"], key["target_path"], key["is_table"]] = dict(entry)
        return bool(before)

    def _identify(self, transaction: None, change: Change, native_id: str | None) -> None:
        for row in self.index.ledger.values():
            if (row["mirror"], row["target_path"], row["is_table"]) == (self.rule.name, change.target_path, 1):
                row["native_id"] = native_id

    def _store_outcome(self, transaction: None, intent: Intent, outcome: Outcome, code: str | None, *_: Any) -> None:
        row = self.index.journal[intent.op_id]
        row.state, row.code = outcome.state.value, code
        self.index.version += 1

    def names_at(self, canonical: str) -> Collection[str]:
        return self.index.paths_at(self.rule.target, [canonical])[canonical]

    def names_given(self, canonical: str) -> Collection[str]:
        rows = self.index.ledger.values()
        return [row["target_path"] for row in rows if (row["target_source"], row["canonical"]) == (self.rule.target, canonical)]

    def names_pending(self, canonical: str) -> Collection[str]:
        return sorted(pending_paths((intent.change for intent in self.index.open_intents()), self.rule.target, canonical))

    def origin_digest(self, path: str) -> str | None:
        record = self.index.states[self.rule.origin].tables.get(path)
        return record.digest if record else None
