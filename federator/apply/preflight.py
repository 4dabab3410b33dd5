"""Preflight check: verify that origin and target still match the plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from federator.apply.journal import Journal
from federator.apply.operations import needs_no_call
from federator.apply.outcome import Outcome, OutcomeState
from federator.connector import Catalog, Unsupported
from federator.model import parse_path_key
from federator.planning.changes import ABSENT, ANY, Action, Change
from federator.planning.reasons import ApplyCode, Reason


@dataclass(frozen=True)
class PreflightCheck:
    """The check of a change directly before its call.

    ``freed_locations`` are pairs of target path and canonical location that this application has freed; the index may still have
    them. ``origin`` is given for a plan that another run made: each origin is observed, because the index may be older or newer
    than the plan. ``drop_refusal`` says why no namespace is dropped, even if the plan contains a drop.
    """

    journal: Journal
    target: Catalog
    freed_locations: Collection[tuple[str, str]]
    clock: Callable[[], float]
    origin: Catalog | None = None
    drop_refusal: str | None = None

    def find_blocker(self, change: Change) -> Outcome | None:
        """Return the outcome of a change that must not be made. None if it may be made. Raise CatalogError if an observation fails."""
        if change.action is Action.CREATE_NAMESPACE:
            return None
        if change.action is Action.DROP_NAMESPACE:
            return self._check_namespace(change)
        return self._check_origin(change) or self._check_target(change)

    def save_native(self, change: Change) -> tuple[Mapping[str, Any] | None, Outcome | None]:
        """Return the native object that a recreate is about to replace, and the outcome that skips the change, if it must be skipped.

        It is skipped if the catalog would refuse the new object, or if the native object could not be restored completely.
        """
        if change.action is not Action.RECREATE_TABLE or change.before is None or change.after is None:
            return None, None
        if obstacle := self.target.find_recreate_obstacle(change.before, change.after):
            return None, Outcome(change, OutcomeState.SKIPPED, Reason.LOCATION_DECLARED, obstacle)
        try:
            native = self.target.read_native(parse_path_key(change.target_path))
        except Unsupported as error:
            return None, Outcome(change, OutcomeState.SKIPPED, ApplyCode.NOT_RESTORABLE, error.message)
        loss = self.target.describe_recreate_loss(native)
        if loss:
            return native, Outcome(change, OutcomeState.SKIPPED, ApplyCode.NOT_RESTORABLE, loss)
        return native, None

    def find_recreate_refusal(self, change: Change) -> str | None:
        """Return why an unfinished recreate cannot be completed: another target path now has its location. None if no path has it.

        The index may still have locations that the dead run had freed, so each path is observed. Raise CatalogError if that fails.
        """
        other = self._find_other_path(change, trust_index=False)
        return other[1] if other else None

    def _check_namespace(self, change: Change) -> Outcome | None:
        path = parse_path_key(change.target_path)
        current = self.target.find_namespace(path)
        if current is None:
            return None
        known = change.namespace
        same_object = known is None or None in (known.native_id, current.native_id) or known.native_id == current.native_id
        if known is None or current.digest != change.precondition.get("target") or not same_object:
            return self._skip_moved(change, "the namespace has changed since the plan was made")
        if self.target.list_namespaces(path) or self.target.list_tables(path):
            return Outcome(change, OutcomeState.SKIPPED, ApplyCode.NOT_EMPTY, "the namespace is no longer empty")
        return Outcome(change, OutcomeState.SKIPPED, Reason.DROP_CASCADES, self.drop_refusal) if self.drop_refusal else None

    def _check_origin(self, change: Change) -> Outcome | None:
        # A proven absence is not checked here, but observed immediately before the call (``confirmation``).
        expected = change.precondition.get("origin")
        if expected in (None, ANY, ABSENT) or expected == self._read_origin_digest(change):
            return None
        return self._skip_moved(change, "the origin has changed since the plan was made")

    def _read_origin_digest(self, change: Change) -> str | None:
        """Return the digest of the origin in the index, or as it is observed if ``origin`` is given. None if it is absent."""
        if self.origin is None:
            return self.journal.origin_digest(change.origin_path)
        record = self.origin.observe(parse_path_key(change.origin_path)).record
        return record.digest if record is not None else None

    def _check_target(self, change: Change) -> Outcome | None:
        observation = self.target.observe(parse_path_key(change.target_path))
        current_digest = observation.record.digest if observation.record else ABSENT if observation.is_absent else "foreign"
        if current_digest == change.precondition.get("target"):
            other = self._find_other_path(change, trust_index=True)
            return Outcome(change, OutcomeState.SKIPPED, *other) if other else None
        if needs_no_call(change, observation):
            return None
        detail = "the target has changed since the plan was made"
        return Outcome(change, OutcomeState.SKIPPED, Reason.MOVED, detail, observation.record, self.clock())

    def _find_other_path(self, change: Change, *, trust_index: bool) -> tuple[Reason | ApplyCode, str] | None:
        """Return code and message that refuse a change whose location another target path already has. None if no path has it.

        The plan gave each location one path. Since then another mirror may have declared the location, or an old path may not have
        been freed. A path that only the ledger has there was written by a dead run, so it counts only if an observation confirms
        it. Without ``trust_index`` the same applies to paths of the index.
        """
        location = change.after and change.after.location
        if pending_paths := self._list_other_paths(change, self.journal.paths_pending_at):
            detail = f"{pending_paths[0]} may point to {location}: the outcome of its last call is not known"
            return ApplyCode.OPEN_INTENT, detail
        indexed_paths = self._list_other_paths(change, self.journal.paths_at)
        other_path = indexed_paths[0] if indexed_paths and trust_index else None
        if other_path is None:
            candidates = {*indexed_paths, *self._list_other_paths(change, self.journal.paths_declared_at)}
            other_path = self._observe_path_at_location(change, candidates, indexed=indexed_paths)
        return (Reason.LOCATION_DECLARED, f"{other_path} already points to {location}") if other_path else None

    def _list_other_paths(self, change: Change, list_paths: Callable[[str], Collection[str]]) -> list[str]:
        """Return the other paths of the location that a change would declare."""
        canonical_location = change.after.canonical if change.after is not None else None
        if canonical_location is None or not (change.action is Action.DECLARE_TABLE or change.moves_location):
            return []
        freed = {path for path, location in self.freed_locations if location == canonical_location}
        return sorted(set(list_paths(canonical_location)) - freed - {change.target_path})

    def _observe_path_at_location(self, change: Change, paths: Iterable[str], *, indexed: Collection[str]) -> str | None:
        """Return the first of some paths that an observation finds at the location of a change. Later paths are not observed.

        If an observation cannot show a path's location (a managed table, for example), the location in the index counts.
        """
        canonical_location = change.after.canonical if change.after is not None else None
        for path in sorted(paths):
            observation = self.target.observe(parse_path_key(path))
            matches = observation.record is not None and observation.record.canonical == canonical_location
            if matches or (observation.foreign is not None and path in indexed):
                return path
        return None

    @staticmethod
    def _skip_moved(change: Change, detail: str) -> Outcome:
        return Outcome(change, OutcomeState.SKIPPED, Reason.MOVED, detail)
