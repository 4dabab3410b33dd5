"""Recovery: resolve an open intent after its response was lost, and finish or undo half of a recreate."""

from __future__ import annotations

from collections.abc import Callable

from federator.apply.journal import Intent
from federator.apply.operations import RecreateInterrupted, declare
from federator.apply.outcome import Outcome, OutcomeState
from federator.connector import (
    Catalog,
    CatalogError,
    NamespaceNotFound,
)
from federator.model import parse_path_key
from federator.planning.changes import Action
from federator.planning.intent_resolution import Resolution, resolve_namespace, resolve_table
from federator.planning.ownership import with_operation_id
from federator.planning.reasons import ApplyCode, Reason


def complete_recreate(
    target: Catalog, intent: Intent, clock: Callable[[], float], may_call: Callable[[], bool], refusal: str | None
) -> Outcome:
    """Complete an unfinished recreate with the new declaration, or restore the old one if the new one is refused.

    ``refusal`` says why the new declaration is refused without a call: another path now has its location. If the namespace is
    absent too, the change fails: the ledger has an object that another process removed, and ``on_missing`` decides. Raise
    CatalogError if neither can be declared now: the intent stays open.
    """
    change, op_id = intent.change, intent.op_id
    assert change.before is not None
    assert change.after is not None
    try:
        if refusal is None:
            try:
                created = declare(target, with_operation_id(change.after, op_id))
                return Outcome(change, OutcomeState.DONE, record=created, observed_at=clock(), op_id=op_id)
            except CatalogError as error:
                if error.retryable or isinstance(error, NamespaceNotFound):
                    raise
                refusal = error.message
        if not may_call():
            raise RecreateInterrupted(f"the lease ended before the old declaration was restored: {refusal}")
        restored = target.declare_table(change.before)
    except NamespaceNotFound as error:
        detail = f"it was deregistered for a recreate, and its namespace is absent: {error.message}"
        return Outcome(change, OutcomeState.FAILED, Reason.NAMESPACE_MISSING, detail, observed_at=clock(), op_id=op_id)
    detail = f"the old declaration was restored, because the new one was refused: {refusal}"
    return Outcome(change, OutcomeState.FAILED, ApplyCode.RESTORED, detail, restored, clock(), op_id)


def undo_unfinished(target: Catalog, intent: Intent, now: float) -> Outcome | None:
    """Remove the unfinished declaration of this operation, and return the outcome.

    Return None for a recreate: it is completed next, as if the target were absent.
    """
    change = intent.change
    target.remove_unfinished(parse_path_key(change.target_path), intent.op_id)
    if change.action is Action.RECREATE_TABLE:
        return None
    detail = "the declaration was interrupted, and its unfinished entry was removed"
    return Outcome(change, OutcomeState.FAILED, ApplyCode.NOT_MADE, detail, observed_at=now, op_id=intent.op_id)


def resolve(target: Catalog, intent: Intent, now: float, *, keeps_properties: bool) -> Outcome | None:
    """Observe the object of a call whose response was lost, at the time ``now``, and return the outcome.

    None for a half-done recreate and for an unfinished declaration. Raise CatalogError if the object cannot be observed.
    """
    change, path = intent.change, parse_path_key(intent.change.target_path)
    if not change.is_table:
        resolved: Resolution | None = resolve_namespace(change, target.find_namespace(path))
    else:
        resolved = resolve_table(change, intent.op_id, target.observe(path), keeps_properties=keeps_properties)
    if resolved is None:
        return None
    return Outcome(change, resolved.state, resolved.code, resolved.detail, resolved.record, now, intent.op_id)
