"""What becomes of an intent: what an observation proves of a lost call, and what the journal and the ledger keep of an outcome. Pure.

``apply`` observes and stores; the proof does both in memory and calls the same functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from federator.connector import Observation
from federator.model import NamespaceRecord, TableRecord
from federator.planning.changes import Action, Change
from federator.planning.journal_lines import ALREADY_GONE, LOCATION_CHANGED, RENAMED
from federator.planning.marks import bound_mark
from federator.planning.rule import MirrorRule

_OF_NAMESPACES = (Action.CREATE_NAMESPACE, Action.DROP_NAMESPACE)
_REMOVALS = (Action.DEREGISTER_TABLE, Action.DROP_NAMESPACE)


class State(StrEnum):
    """What became of one change."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    #: the call's fate is unknown and the object cannot tell: a person decides
    NEEDS_ADOPTION = "needs_adoption"
    #: the call's fate is unknown and the catalog does not answer: the intent stays open
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Resolution:
    """The outcome of a call whose response was lost; ``record`` is the object as it was observed afterwards (None: absent)."""

    state: State
    code: str | None = None
    detail: str | None = None
    record: TableRecord | NamespaceRecord | None = None


def resolve_table(change: Change, op_id: str, seen: Observation, *, keeps_properties: bool) -> Resolution | None:
    """Return what an observation of the target table proves of the change's call.

    None if the call is half done: a recreate without its second half, or an unfinished declaration of this operation.
    ``keeps_properties`` says whether the catalog can hold an ownership marker in properties.
    """
    if change.action is Action.DEREGISTER_TABLE:
        return Resolution(State.DONE) if seen.absent else _not_made(seen.record)
    if seen.unfinished == op_id or (seen.absent and change.action is Action.RECREATE_TABLE):
        return None
    record, before = seen.record, change.before
    if record is None:
        return _not_made(None, seen.foreign)
    mark = bound_mark(record)
    if mark is not None and mark.op_id == op_id:
        return Resolution(State.DONE, record=record)
    if before is not None and record.digest == before.digest:
        return _not_made(record)
    if change.by_person and change.after is not None and record.canonical == change.after.canonical:
        # Declarations by users are not owned, so any table at the requested location satisfies the request.
        return Resolution(State.DONE, record=record)
    what = "it does not carry this operation's mark" if keeps_properties else "the catalog keeps no mark that would tell"
    return Resolution(State.NEEDS_ADOPTION, "needs_adoption", f"an object is there, and {what}", record)


def resolve_namespace(change: Change, seen: NamespaceRecord | None) -> Resolution:
    """Return what an observation of the target namespace (None: not found) proves of the change's call."""
    if change.action is Action.DROP_NAMESPACE:
        return Resolution(State.DONE) if seen is None else _not_made(seen)
    if seen is None:
        return _not_made(None)
    wanted = bound_mark(change.namespace) if change.namespace is not None else None
    if wanted is not None and bound_mark(seen) == wanted:
        return Resolution(State.DONE, record=seen)
    return Resolution(State.SKIPPED, "already_there", "it is there, and nothing says that we made it", seen)


def journal_code(change: Change, state: State, code: str | None, *, forgotten: bool) -> str | None:
    """Return the code of a journal line. ``forgotten`` says whether the ledger had an entry of the target.

    A move that nobody can tell of may have been made: the guards count it.
    """
    if state is State.DONE and change.action in _REMOVALS and not forgotten:
        return ALREADY_GONE
    if state is State.DONE and change.pair is not None:
        return RENAMED
    if change.moves_location and state in (State.DONE, State.NEEDS_ADOPTION):
        return LOCATION_CHANGED
    return code


def ledger_key(rule: MirrorRule, change: Change) -> dict[str, Any]:
    """Return the key columns of the ledger entry that a change of a mirror concerns."""
    return {
        "mirror": rule.name, "origin_source": change.origin_source, "origin_path": change.origin_path,
        "target_source": change.target_source, "target_path": change.target_path,
        "is_table": int(change.action not in _OF_NAMESPACES),
    }  # fmt: skip


def ledger_entry(
    rule: MirrorRule, change: Change, op_id: str, record: TableRecord | NamespaceRecord | None, target_digest: str | None
) -> dict[str, Any] | None:
    """Return the ledger entry of a change that was made; None if nothing is there afterwards, or a person declared it."""
    if change.action in _REMOVALS or change.by_person:
        return None
    return {
        **ledger_key(rule, change),
        "op_id": op_id,
        "native_id": record.native_id if record else None,
        "location": record.location if record else None,
        "canonical": record.canonical if isinstance(record, TableRecord) else None,
        "origin_digest": change.precondition.get("origin"),
        "target_digest": target_digest,
        "mapping_digest": rule.mapping_digest,
        "declared": change.declared,
    }


Transaction = TypeVar("Transaction", contravariant=True)


class JournalLease(Protocol[Transaction]):
    """A lease that a journal needs. ``check`` raises unless it is held, as the transaction that is about to write sees it."""

    def check(self, transaction: Transaction, /) -> None: ...

    def fits(self, seconds: float, /) -> bool: ...


def require_leases(leases: Iterable[JournalLease[Transaction]], transaction: Transaction) -> None:
    """The condition of each write of a journal: all its leases are held. Raises what the first lost one raises."""
    for lease in leases:
        lease.check(transaction)


def _not_made(record: TableRecord | NamespaceRecord | None, detail: str | None = None) -> Resolution:
    return Resolution(State.FAILED, "not_made", detail or "the call was not carried out", record)
