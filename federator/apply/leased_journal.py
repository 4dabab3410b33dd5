"""A journal's order of work, whatever stores it: leases before each write, and an outcome together with its ledger entry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, TypeVar

from federator.apply.outcome import RESTORED, Outcome, State
from federator.apply.port import Intent
from federator.planning.changes import Action, Change
from federator.planning.rule import MirrorRule
from federator.planning.settlement import JournalLease, journal_code, ledger_entry, require_leases

T = TypeVar("T")


class LeasedJournal(ABC, Generic[T]):
    """The writing half of ``Journal`` over transactions of type ``T``. ``leases`` are the mirror's and the target's."""

    rule: MirrorRule
    leases: Sequence[JournalLease[T]]

    def may_call(self, seconds: float) -> bool:
        return all(lease.fits(seconds) for lease in self.leases)

    def intend(self, intent: Intent) -> None:
        with self._leased() as transaction:
            self._store_intent(transaction, intent)

    def settle(self, intent: Intent, outcome: Outcome) -> None:
        change, done = outcome.change, outcome.state is State.DONE
        entry: dict[str, Any] | None = None
        native_id: str | None = None
        with self._leased() as transaction:
            forgotten = False
            if done:
                entry = ledger_entry(self.rule, change, intent.op_id, outcome.record, outcome.target_digest)
                forgotten = self._replace_entry(transaction, change, entry, every_mirror=change.action is Action.ADOPT)
            elif outcome.code == RESTORED and outcome.record is not None:
                native_id = outcome.record.native_id
                self._identify(transaction, change, native_id)
            code = journal_code(change, outcome.state, outcome.code, forgotten=forgotten)
            self._store_outcome(transaction, intent, outcome, code, entry, native_id)

    @contextmanager
    def _leased(self) -> Iterator[T]:
        """A writing transaction that begins by checking every lease."""
        with self._transaction() as transaction:
            require_leases(self.leases, transaction)
            yield transaction

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[T]: ...

    @abstractmethod
    def _store_intent(self, transaction: T, intent: Intent) -> None: ...

    @abstractmethod
    def _replace_entry(self, transaction: T, change: Change, entry: Mapping[str, Any] | None, *, every_mirror: bool) -> bool:
        """Replaces the ledger's entry of the target, of this mirror or of any. Returns whether there was one."""

    @abstractmethod
    def _identify(self, transaction: T, change: Change, native_id: str | None) -> None:
        """The ledger's entry of the target gets another native id."""

    @abstractmethod
    def _store_outcome(
        self, transaction: T, intent: Intent, outcome: Outcome, code: str | None, entry: Mapping[str, Any] | None,
        native_id: str | None,
    ) -> None: ...  # fmt: skip
