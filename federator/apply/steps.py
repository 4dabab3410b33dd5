"""One Change as one call to a catalog, and how its fate is found out when the call's answer was lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from federator.apply.outcome import RESTORED, Outcome, State
from federator.apply.port import Intent
from federator.connector import (
    Catalog,
    CatalogError,
    ConcurrentModification,
    Internal,
    NamespaceNotFound,
    Observation,
    ServiceUnavailable,
)
from federator.model import NamespaceRecord, TableRecord, parse_key
from federator.planning.changes import Action, Change
from federator.planning.marks import bound_mark, stamped
from federator.planning.reasons import Reason


class Halfway(ServiceUnavailable):
    """A recreation took the old declaration away, and the new one failed."""


def carry_out(target: Catalog, intent: Intent, may_call: Callable[[], bool]) -> TableRecord | NamespaceRecord | None:
    """Makes the one external call (a recreation's two, the second if ``may_call``); returns the object as read back, None where it is
    gone.

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
        if change.before is not None and not target.observe(path).absent:
            target.deregister_table(_unmoved(target, change.before))
        return None
    assert change.after is not None
    after = stamped(change.after, intent.op_id)
    if change.action is Action.DECLARE_TABLE:
        return _confirmed(after, target.declare_table(after))
    assert change.before is not None
    now = _unmoved(target, change.before)
    if change.action is Action.RECREATE_TABLE:
        target.deregister_table(now)
        if not may_call():
            raise Halfway(f"{now.source}${now.key} was deregistered, and the lease ended before it was declared again")
        try:
            return _confirmed(after, target.declare_table(after))
        except CatalogError as error:
            raise Halfway(f"{now.source}${now.key} was deregistered, and not declared again: {error.message}") from error
    return _confirmed(after, target.update_table(now, replace(after, version=now.version)))


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
            made, refused = _accepted(target, stamped(change.after, op_id))
        if made is not None:
            return Outcome(change, State.DONE, record=made, observed_at=clock(), op_id=op_id)
        if not may_call():
            raise Halfway(f"the lease ended before it was declared again as it was: {refused}")
        restored = target.declare_table(change.before)
    except NamespaceNotFound as error:
        detail = f"it was deregistered to be declared anew, and its namespace is gone: {error.message}"
        return Outcome(change, State.FAILED, Reason.NAMESPACE_MISSING, detail, observed_at=clock(), op_id=op_id)
    detail = f"declared again as it was, since the new declaration was refused: {refused}"
    return Outcome(change, State.FAILED, RESTORED, detail, restored, clock(), op_id)


def already_settled(change: Change, seen: Observation) -> bool:
    """A deregistration whose object is gone already, or has given its name to what is no Lance table, needs no call, only the
    ledger's word."""
    forgotten = seen.absent or (change.before is None and seen.record is None)
    return change.action is Action.DEREGISTER_TABLE and forgotten


@dataclass(frozen=True)
class Fate:
    """Whether a call whose answer was lost has been carried out, by a look at its object at the time ``now``."""

    target: Catalog
    intent: Intent
    keeps_properties: bool
    now: float

    def outcome(self) -> Outcome | None:
        """None for a recreation that is half done. Raises CatalogError."""
        action = self.intent.change.action
        if action in (Action.CREATE_NAMESPACE, Action.DROP_NAMESPACE):
            return self._namespace()
        seen = self.target.observe(parse_key(self.intent.change.target_path))
        if action is Action.DEREGISTER_TABLE:
            return self._done(None) if seen.absent else self._not_made(seen.record)
        if seen.absent and action is Action.RECREATE_TABLE:
            return None
        return self._table(seen)

    def _namespace(self) -> Outcome:
        change = self.intent.change
        dropped = change.action is Action.DROP_NAMESPACE
        try:
            seen = self.target.describe_namespace(parse_key(change.target_path))
        except NamespaceNotFound:
            return self._done(None) if dropped else self._not_made(None)
        if dropped:
            return self._not_made(seen)
        wanted = bound_mark(change.namespace) if change.namespace is not None else None
        if wanted is not None and bound_mark(seen) == wanted:
            return self._done(seen)
        return self._outcome(State.SKIPPED, "already_there", "it is there, and nothing says that we made it", seen)

    def _table(self, seen: Observation) -> Outcome:
        record, before = seen.record, self.intent.change.before
        if record is None:
            return self._not_made(None, seen.foreign)
        mark = bound_mark(record)
        if mark is not None and mark.op_id == self.intent.op_id:
            return self._done(record)
        if before is not None and record.digest == before.digest:
            return self._not_made(record)
        asked = self.intent.change
        if asked.by_person and asked.after is not None and record.canonical == asked.after.canonical:
            # Nothing becomes ours by it: what was asked for is there, whoever made it.
            return self._done(record)
        what = (
            "it does not carry this operation's mark" if self.keeps_properties else "the catalog keeps no mark that would tell"
        )
        return self._outcome(State.NEEDS_ADOPTION, "needs_adoption", f"an object is there, and {what}", record)

    def _done(self, record: TableRecord | NamespaceRecord | None) -> Outcome:
        return self._outcome(State.DONE, None, None, record)

    def _not_made(self, record: TableRecord | NamespaceRecord | None, detail: str | None = None) -> Outcome:
        return self._outcome(State.FAILED, "not_made", detail or "the call was not carried out", record)

    def _outcome(
        self, state: State, code: str | None, message: str | None, record: TableRecord | NamespaceRecord | None
    ) -> Outcome:
        return Outcome(self.intent.change, state, code, message, record, self.now, self.intent.op_id)


def _unmoved(target: Catalog, before: TableRecord) -> TableRecord:
    # The version of the newest look, since a catalog may compare versions itself; but only of the very object that was planned for.
    seen = target.observe(before.path)
    if seen.record is None or seen.record.digest != before.digest:
        raise ConcurrentModification(f"{before.source}${before.key} is not as the plan read it")
    return seen.record


def _confirmed(wanted: TableRecord, made: TableRecord) -> TableRecord:
    if made.canonical != wanted.canonical:
        raise Internal(f"{made.source}${made.key} was declared at {wanted.location} and reads back as {made.location}")
    return made


def _accepted(target: Catalog, wanted: TableRecord) -> tuple[TableRecord | None, str]:
    """The table as declared, or why the catalog refuses it. Raises CatalogError where it may take it later, or has no namespace."""
    try:
        return _confirmed(wanted, target.declare_table(wanted)), ""
    except CatalogError as error:
        if error.retryable or isinstance(error, NamespaceNotFound):
            raise
        return None, error.message
