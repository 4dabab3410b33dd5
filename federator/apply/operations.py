"""Operations: make one change by one call to a catalog, and require that it had the intended effect."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from federator.apply.journal import Intent
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
from federator.model import NamespaceRecord, TableRecord, parse_path_key
from federator.planning.changes import Action, Change
from federator.planning.ownership import with_operation_id


class RecreateInterrupted(ServiceUnavailable):
    """A recreate removed the old declaration, and the new declaration failed."""


def execute_change(
    target: Catalog, intent: Intent, may_call: Callable[[], bool], confirm: Confirm
) -> TableRecord | NamespaceRecord | None:
    """Make the one external call of a change, or the two of a recreate. Return the object as read back, or None if it is absent.

    ``may_call`` allows the second call of a recreate. ``confirm`` is called immediately before a call that removes or moves a
    table, and before the first call of a recreate. Raise CatalogError; ConcurrentModification if the object has changed since the
    plan read it.
    """
    change = intent.change
    path = parse_path_key(change.target_path)
    if change.action is Action.CREATE_NAMESPACE:
        return target.create_namespace(change.namespace or NamespaceRecord(change.target_source, path))
    if change.action is Action.DROP_NAMESPACE:
        # A namespace that was gone when the plan was made needs no call: one that exists now is another user's.
        if change.namespace is not None:
            with suppress(NamespaceNotFound):
                target.drop_namespace(path)
        return None
    if change.action is Action.DEREGISTER_TABLE:
        if change.before is None or target.observe(path).is_absent:
            # No call: the ledger entry of an object that another process removed is deleted, on the same condition.
            confirm()
        else:
            target.deregister_table(_require_unchanged(target, change.before), confirm=confirm)
        return None
    assert change.after is not None
    after = with_operation_id(change.after, intent.op_id)
    if change.action is Action.DECLARE_TABLE:
        return declare(target, after)
    assert change.before is not None
    current = _require_unchanged(target, change.before)
    if change.action is Action.RECREATE_TABLE:
        target.deregister_table(current, confirm=confirm)
        if not may_call():
            raise RecreateInterrupted(
                f"{current.source}${current.key} was deregistered, and the lease ended before the new declaration"
            )
        try:
            return declare(target, after)
        except CatalogError as error:
            raise RecreateInterrupted(
                f"{current.source}${current.key} was deregistered, and the new declaration failed: {error.message}"
            ) from error
    return _require_location(after, target.update_table(current, replace(after, version=current.version), confirm=confirm))


def needs_no_call(change: Change, observation: Observation) -> bool:
    """Tell whether a deregistration only needs to delete the ledger entry.

    The object is absent, or a foreign object has its name.
    """
    absent = observation.is_absent or (change.before is None and observation.record is None)
    return change.action is Action.DEREGISTER_TABLE and absent


def _require_unchanged(target: Catalog, before: TableRecord) -> TableRecord:
    # Use the version of the newest observation, because a catalog may compare versions itself. The object must be the one in the
    # plan.
    observation = target.observe(before.path)
    if observation.record is None or observation.record.digest != before.digest:
        raise ConcurrentModification(f"{before.source}${before.key} has changed since the plan read it")
    return observation.record


def declare(target: Catalog, record: TableRecord) -> TableRecord:
    """Declare a table. Raise Internal if it reads back at another location."""
    return _require_location(record, target.declare_table(record))


def _require_location(expected: TableRecord, created: TableRecord) -> TableRecord:
    if created.canonical != expected.canonical:
        raise Internal(
            f"{created.source}${created.key} was declared at {expected.location} and reads back as {created.location}"
        )
    return created
