"""One Change as one call to a catalog, and how its fate is found out when the call's answer was lost."""

from __future__ import annotations

import time
from dataclasses import replace

from federator.apply.outcome import Outcome, State
from federator.connector import Catalog, ConcurrentModification, Internal, NamespaceNotFound, Observation, Unsupported
from federator.model import NamespaceRecord, TableRecord, parse_key
from federator.planning.changes import Action, Change
from federator.planning.marks import Mark, bound_mark


def carry_out(target: Catalog, change: Change, op_id: str) -> TableRecord | NamespaceRecord | None:
    """Makes the one external call; returns the object as read back, None where it is gone.

    Raises CatalogError; ConcurrentModification where the object is not as the plan read it.
    """
    path = parse_key(change.target_path)
    if change.action is Action.CREATE_NAMESPACE:
        return target.create_namespace(NamespaceRecord(change.target_source, path))
    if change.action is Action.DEREGISTER_TABLE:
        if change.before is not None and not target.observe(path).absent:
            target.deregister_table(_unmoved(target, change.before))
        return None
    assert change.after is not None
    after = replace(change.after, properties={**change.after.properties, **_op(change.after, op_id)})
    if change.action is Action.DECLARE_TABLE:
        return _confirmed(after, target.declare_table(after))
    if change.action in (Action.UPDATE_TABLE, Action.ADOPT):
        assert change.before is not None
        now = _unmoved(target, change.before)
        return _confirmed(after, target.update_table(now, replace(after, version=now.version)))
    raise Unsupported(f"{change.action.value} is not carried out by this version")


def already_settled(change: Change, seen: Observation) -> bool:
    """A deregistration whose object is gone already needs no call, only the ledger's word."""
    return change.action is Action.DEREGISTER_TABLE and seen.absent


def fate(target: Catalog, change: Change, op_id: str, *, keeps_properties: bool) -> Outcome:
    """Whether a call whose answer was lost has been carried out, by a look at its object. Raises CatalogError."""
    path, now = parse_key(change.target_path), time.time()
    if change.action is Action.CREATE_NAMESPACE:
        try:
            return Outcome(change, State.DONE, record=target.describe_namespace(path), observed_at=now, op_id=op_id)
        except NamespaceNotFound:
            return Outcome(change, State.FAILED, "not_made", "the call was not carried out", op_id=op_id)
    seen = target.observe(path)
    if change.action is Action.DEREGISTER_TABLE:
        if seen.absent:
            return Outcome(change, State.DONE, observed_at=now, op_id=op_id)
        return Outcome(change, State.FAILED, "not_made", "the call was not carried out", seen.record, now, op_id)
    if seen.record is None:
        return Outcome(change, State.FAILED, "not_made", seen.foreign or "the call was not carried out", None, now, op_id)
    mark = bound_mark(seen.record)
    if mark is not None and mark.op_id == op_id:
        return Outcome(change, State.DONE, record=seen.record, observed_at=now, op_id=op_id)
    if change.before is not None and seen.record.digest == change.before.digest:
        return Outcome(change, State.FAILED, "not_made", "the call was not carried out", seen.record, now, op_id)
    what = "it does not carry this operation's mark" if keeps_properties else "the catalog keeps no mark that would tell"
    return Outcome(change, State.NEEDS_ADOPTION, "needs_adoption", f"an object is there, and {what}", seen.record, now, op_id)


def _unmoved(target: Catalog, before: TableRecord) -> TableRecord:
    # The version of the newest look, since a catalog may compare versions itself; but only of the very object that was planned for.
    seen = target.observe(before.path)
    if seen.record is None or seen.record.digest != before.digest:
        raise ConcurrentModification(f"{before.source}${before.key} is not as the plan read it")
    return seen.record


def _op(after: TableRecord, op_id: str) -> dict[str, str]:
    mark = bound_mark(after)
    return replace(mark, op_id=op_id).properties(after.path) if isinstance(mark, Mark) else {}


def _confirmed(wanted: TableRecord, made: TableRecord) -> TableRecord:
    if made.canonical != wanted.canonical:
        raise Internal(f"{made.source}${made.key} was declared at {wanted.location} and reads back as {made.location}")
    return made
