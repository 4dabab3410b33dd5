"""One Change as one call to a catalog, and how its fate is found out when the call's answer was lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from federator.apply.outcome import RESTORED, Outcome, State
from federator.apply.port import Intent
from federator.connector import (
    Catalog,
    CatalogError,
    ConcurrentModification,
    Confirm,
    Internal,
    NamespaceNotFound,
    Observation,
    ServiceUnavailable,
)
from federator.connector.operation import operation
from federator.model import NamespaceRecord, Path, TableRecord, parse_key
from federator.planning.changes import Action, Change
from federator.planning.marks import stamped
from federator.planning.reasons import Reason
from federator.planning.settlement import Resolution, resolve_namespace, resolve_table


class Halfway(ServiceUnavailable):
    """A recreation took the old declaration away, and the new one failed."""


def carry_out(
    target: Catalog, intent: Intent, may_call: Callable[[], bool], confirm: Confirm
) -> TableRecord | NamespaceRecord | None:
    """Makes the one external call (a recreation's two, the second if ``may_call``); returns the object as read back, None where it is
    gone. ``confirm`` is called immediately before a call that removes, moves or recreates a table, a recreation's first only.

    Raises CatalogError; ConcurrentModification where the object is not as the plan read it.
    """
    change = intent.change
    path = parse_key(change.target_path)
    if change.action is Action.CREATE_NAMESPACE:
        return target.create_namespace(change.namespace or NamespaceRecord(change.target_source, path))
    if change.action is Action.DROP_NAMESPACE:
        with suppress(NamespaceNotFound):
            target.drop_namespace(path)
        return None
    if change.action is Action.DEREGISTER_TABLE:
        if change.before is None or target.observe(path).absent:
            # No call: the ledger forgets what somebody else removed, on the same condition.
            confirm()
        else:
            target.deregister_table(_unmoved(target, change.before), confirm=confirm)
        return None
    assert change.after is not None
    after = stamped(change.after, intent.op_id)
    if change.action is Action.DECLARE_TABLE:
        return _declared(target, after, intent.op_id)
    assert change.before is not None
    now = _unmoved(target, change.before)
    if change.action is Action.RECREATE_TABLE:
        target.deregister_table(now, confirm=confirm)
        if not may_call():
            raise Halfway(f"{now.source}${now.key} was deregistered, and the lease ended before it was declared again")
        try:
            return _declared(target, after, intent.op_id)
        except CatalogError as error:
            raise Halfway(f"{now.source}${now.key} was deregistered, and not declared again: {error.message}") from error
    return _confirmed(after, target.update_table(now, replace(after, version=now.version), confirm=confirm))


def finish_recreation(
    target: Catalog, intent: Intent, clock: Callable[[], float], may_call: Callable[[], bool], taken: str | None
) -> Outcome:
    """Makes a recreation whole whose first half was done: the new declaration, or where that is refused, the old one.

    ``taken`` says which other name has got the new place by now: then it is refused here. Where the namespace is gone as well, there is
    nothing to make whole: the ledger knows of an object that somebody removed, and ``on_missing`` decides. Raises CatalogError where
    neither could be declared now: the intent stays open.
    """
    change, op_id = intent.change, intent.op_id
    assert change.before is not None
    assert change.after is not None
    made, refused = None, taken
    try:
        if refused is None:
            made, refused = _accepted(target, stamped(change.after, op_id), op_id)
        if made is not None:
            return Outcome(change, State.DONE, record=made, observed_at=clock(), op_id=op_id)
        if not may_call():
            raise Halfway(f"the lease ended before it was declared again as it was: {refused}")
        with operation(op_id):
            restored = target.declare_table(change.before)
    except NamespaceNotFound as error:
        detail = f"it was deregistered to be declared anew, and its namespace is gone: {error.message}"
        return Outcome(change, State.FAILED, Reason.NAMESPACE_MISSING, detail, observed_at=clock(), op_id=op_id)
    detail = f"declared again as it was, since the new declaration was refused: {refused}"
    return Outcome(change, State.FAILED, RESTORED, detail, restored, clock(), op_id)


def undo_unfinished(target: Catalog, intent: Intent, now: float) -> Outcome | None:
    """Remove the unfinished declaration of this operation. Return None for a recreation, which goes on as if nothing were there."""
    change = intent.change
    target.remove_unfinished(parse_key(change.target_path), intent.op_id)
    if change.action is Action.RECREATE_TABLE:
        return None
    detail = "the declaration was interrupted, and its unfinished entry was removed"
    return Outcome(change, State.FAILED, "not_made", detail, observed_at=now, op_id=intent.op_id)


def already_settled(change: Change, seen: Observation) -> bool:
    """A deregistration whose object is gone already, or has given its name to what is no Lance table, needs no call, only the
    ledger's word."""
    forgotten = seen.absent or (change.before is None and seen.record is None)
    return change.action is Action.DEREGISTER_TABLE and forgotten


def resolve(target: Catalog, intent: Intent, now: float, *, keeps_properties: bool) -> Outcome | None:
    """Observe the object of a call whose response was lost, at the time ``now``, and return the outcome.

    None for a recreation that is half done, and for an unfinished declaration. Raises CatalogError.
    """
    change, path = intent.change, parse_key(intent.change.target_path)
    if change.action in (Action.CREATE_NAMESPACE, Action.DROP_NAMESPACE):
        resolved: Resolution | None = resolve_namespace(change, _find_namespace(target, path))
    else:
        resolved = resolve_table(change, intent.op_id, target.observe(path), keeps_properties=keeps_properties)
    if resolved is None:
        return None
    return Outcome(change, resolved.state, resolved.code, resolved.detail, resolved.record, now, intent.op_id)


def _find_namespace(target: Catalog, path: Path) -> NamespaceRecord | None:
    try:
        return target.describe_namespace(path)
    except NamespaceNotFound:
        return None


def _unmoved(target: Catalog, before: TableRecord) -> TableRecord:
    # The version of the newest look, since a catalog may compare versions itself; but only of the very object that was planned for.
    seen = target.observe(before.path)
    if seen.record is None or seen.record.digest != before.digest:
        raise ConcurrentModification(f"{before.source}${before.key} is not as the plan read it")
    return seen.record


def _declared(target: Catalog, wanted: TableRecord, op_id: str) -> TableRecord:
    with operation(op_id):
        return _confirmed(wanted, target.declare_table(wanted))


def _confirmed(wanted: TableRecord, made: TableRecord) -> TableRecord:
    if made.canonical != wanted.canonical:
        raise Internal(f"{made.source}${made.key} was declared at {wanted.location} and reads back as {made.location}")
    return made


def _accepted(target: Catalog, wanted: TableRecord, op_id: str) -> tuple[TableRecord | None, str]:
    """The table as declared, or why the catalog refuses it. Raises CatalogError where it may take it later, or has no namespace."""
    try:
        return _declared(target, wanted, op_id), ""
    except CatalogError as error:
        if error.retryable or isinstance(error, NamespaceNotFound):
            raise
        return None, error.message
