"""Intent resolution: the outcome that an observation proves of a lost call, and its journal and ledger entries. Pure.

``apply`` observes and stores. The proof does both in memory and calls the same functions. Therefore the condition of each write of
a journal is here, too (``require_leases``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from federator.connector import Observation
from federator.model import NamespaceRecord, TableRecord
from federator.planning.changes import Action, Change
from federator.planning.journal_lines import JournalEffect
from federator.planning.ledger import OwnedObject
from federator.planning.ownership import find_bound_marker
from federator.planning.reasons import ApplyCode, OutcomeCode, Reason, code_text
from federator.planning.rule import MirrorRule

_REMOVALS = (Action.DEREGISTER_TABLE, Action.DROP_NAMESPACE)


class OutcomeState(StrEnum):
    """The state of one change after apply."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    #: the call's outcome is unknown and the object does not show it: a person decides
    NEEDS_ADOPTION = "needs_adoption"
    #: the call's outcome is unknown and the catalog does not respond: the intent stays open
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Resolution:
    """The outcome of a call whose response was lost; ``record`` is the object as it was observed afterwards (None: absent)."""

    state: OutcomeState
    code: Reason | ApplyCode | None = None
    detail: str | None = None
    record: TableRecord | NamespaceRecord | None = None


def resolve_table(change: Change, op_id: str, observation: Observation, *, keeps_properties: bool) -> Resolution | None:
    """Return the outcome of the change's call that an observation of the target table proves.

    None if the call is half done: a recreate without its declaration, or an unfinished declaration of this operation.
    ``keeps_properties`` says whether the catalog can store an ownership marker in properties.
    """
    if change.action is Action.DEREGISTER_TABLE:
        return Resolution(OutcomeState.DONE) if observation.is_absent else _without_effect(observation.record)
    if observation.unfinished == op_id or (observation.is_absent and change.action is Action.RECREATE_TABLE):
        return None
    record, before = observation.record, change.before
    if record is None:
        return _without_effect(None, observation.foreign)
    marker = find_bound_marker(record)
    if marker is not None and marker.op_id == op_id:
        return Resolution(OutcomeState.DONE, record=record)
    if before is not None and record.digest == before.digest:
        return _without_effect(record)
    if change.is_user_declaration and change.after is not None and record.canonical == change.after.canonical:
        # Declarations by users are not owned, so any table at the requested location satisfies the request.
        return Resolution(OutcomeState.DONE, record=record)
    doubt = "its marker has another operation or is missing" if keeps_properties else "the catalog keeps no ownership marker"
    return Resolution(OutcomeState.NEEDS_ADOPTION, Reason.NEEDS_ADOPTION, f"the target has an object, but {doubt}", record)


def resolve_namespace(change: Change, observed: NamespaceRecord | None) -> Resolution:
    """Return the outcome of the change's call that an observation of the target namespace (None: not found) proves."""
    if change.action is Action.DROP_NAMESPACE:
        return Resolution(OutcomeState.DONE) if observed is None else _without_effect(observed)
    if observed is None:
        return _without_effect(None)
    expected_marker = find_bound_marker(change.namespace) if change.namespace is not None else None
    if expected_marker is not None and find_bound_marker(observed) == expected_marker:
        return Resolution(OutcomeState.DONE, record=observed)
    return Resolution(
        OutcomeState.SKIPPED,
        ApplyCode.ALREADY_THERE,
        "it exists, and no ownership marker shows that this mirror created it",
        observed,
    )


def journal_code(change: Change, state: OutcomeState, code: OutcomeCode | None, *, had_entry: bool) -> str | None:
    """Return the stored code of a journal line: its effect, or else the code of the outcome.

    ``had_entry`` says whether the ledger had an entry of the target.
    A move with an unknown outcome may have been made, so the guards count it.
    """
    if state is OutcomeState.DONE and change.action in _REMOVALS and not had_entry:
        return JournalEffect.ALREADY_GONE
    if state is OutcomeState.DONE and change.pair is not None:
        return JournalEffect.RENAMED
    if change.moves_location and state in (OutcomeState.DONE, OutcomeState.NEEDS_ADOPTION):
        return JournalEffect.LOCATION_CHANGED
    return code_text(code)


def ledger_entry(
    rule: MirrorRule, change: Change, op_id: str, record: TableRecord | NamespaceRecord | None, target_digest: str | None
) -> OwnedObject | None:
    """Return the ledger entry of a completed change. None if the target is absent afterwards, or a user declared it."""
    if change.action in _REMOVALS or change.is_user_declaration:
        return None
    return OwnedObject(
        mirror=rule.name,
        origin_source=change.origin_source,
        origin_path=change.origin_path,
        target_source=change.target_source,
        target_path=change.target_path,
        is_table=int(change.is_table),
        op_id=op_id,
        native_id=record.native_id if record else None,
        location=record.location if record else None,
        canonical=record.canonical if isinstance(record, TableRecord) else None,
        origin_digest=change.precondition.get("origin"),
        target_digest=target_digest,
        mapping_digest=rule.mapping_digest,
        declared=change.declared,
    )


Transaction = TypeVar("Transaction", contravariant=True)


class JournalLease(Protocol[Transaction]):
    """A lease that a journal needs. ``require_held`` raises unless the lease is held in the view of the writing transaction."""

    def require_held(self, transaction: Transaction, /) -> None: ...

    def outlasts(self, seconds: float, /) -> bool: ...


def require_leases(leases: Iterable[JournalLease[Transaction]], transaction: Transaction) -> None:
    """Check the condition of each write of a journal: all its leases are held. Raise the error of the first lost lease."""
    for lease in leases:
        lease.require_held(transaction)


def _without_effect(record: TableRecord | NamespaceRecord | None, detail: str | None = None) -> Resolution:
    return Resolution(OutcomeState.FAILED, ApplyCode.NOT_MADE, detail or "the call was not carried out", record)
