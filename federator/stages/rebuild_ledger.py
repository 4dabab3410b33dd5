"""Ledger rebuild: add objects with this instance's ownership marker that are missing in the ledger.

Used for an index that was lost or comes from an old backup. The index's current state of the target names the objects, and a direct
observation of each object decides; the catalog is never changed. An entry claims only what the marker and the mirror's rule prove.
Other content stays the target's own, and the next plan compares it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from federator.apply.source_identity import opened_as_known
from federator.connector import Catalog, CatalogError, NamespaceNotFound, StateError
from federator.model import CoverageState, Record, TableRecord, parse_path_key, path_key
from federator.model.audit_kinds import AuditKind
from federator.planning.cells import CellInputs, LazyRecord, LedgerRow, assign_cell, decide_cell
from federator.planning.decision import CrawlEvidence, declaration_json
from federator.planning.ledger import OwnedObject
from federator.planning.mapping import MirrorContext, map_path, map_table
from federator.planning.ownership import (
    COMMENT_PREFIX,
    PREFIX,
    OwnershipMarker,
    find_bound_marker,
    strip_comment_marker,
    strip_marker_properties,
)
from federator.planning.publication import ObservedObject
from federator.planning.rule import MirrorRule
from federator.runtime.text import format_count
from federator.stages.context import LEASE_WAIT_SECONDS, RunContext
from federator.stages.plan import mirror_context
from federator.stages.result import RebuildResult, RecoverableEntry, UnrecoverableObject
from federator.store import Connection, audit_log, coverage, journal, ledger, records
from federator.store.leases import Lease, acquire_lease
from federator.store.observations import publish_observations

_UNREAD_STATES = (CoverageState.FAILED, CoverageState.SKIPPED)
_UNMARKED = "the catalog keeps neither properties nor comments, so no marker shows which of its tables are owned"
_UNRESOLVED = "the outcome of its last call is not known yet; the next run resolves it"


def rebuild_ledgers(context: RunContext, rules: Sequence[MirrorRule], *, enter: bool) -> None:
    """Find the missing entries of the mirrors' ledgers. With ``enter``, add each object in a transaction of its own."""
    for rule in rules:
        with context.record_errors(f"mirror {rule.name}"), context.stage("rebuild", rule.name) as finish:
            if enter:
                with _acquire_leases(context, rule) as leases:
                    result = _find_missing_entries(context, rule)
                    _insert_entries(context, result, leases)
            else:
                result = _find_missing_entries(context, rule)
            context.result.rebuilt.append(result)
            finish("partial" if result.gaps else "ok", f"{format_count(len(result.entries), 'object')} missing in the ledger")


@contextmanager
def _acquire_leases(context: RunContext, rule: MirrorRule) -> Iterator[tuple[Lease, Lease]]:
    """Acquire the leases of the mirror and of the target, in the same order as apply."""
    with (
        acquire_lease(context.index, f"mirror:{rule.name}", wait=LEASE_WAIT_SECONDS) as mirror_lease,
        acquire_lease(context.index, f"source:{rule.target}", wait=LEASE_WAIT_SECONDS) as target_lease,
    ):
        yield mirror_lease, target_lease


def _insert_entries(context: RunContext, result: RebuildResult, leases: tuple[Lease, Lease]) -> None:
    observations = []
    for missing in result.entries:
        entry = replace(missing.entry, run_id=context.run.id)
        subject = f"{result.target}${entry.target_path}"
        with context.index.write() as connection:
            for lease in leases:
                lease.require_held(connection)
            # The object has one mirror's marker, so older entries of other mirrors for its path are history.
            ledger.delete_target_entries(
                connection, entry.target_source, entry.target_path, is_table=bool(entry.is_table), mirror=None
            )
            ledger.upsert_entry(connection, entry)
            detail = {"why": missing.reason, **entry.to_json()}
            audit_log.append_event(
                connection,
                AuditKind.LEDGER_REBUILT,
                actor=context.run.actor,
                run_id=context.run.id,
                subject=subject,
                detail=detail,
            )
        observations.append(
            ObservedObject(missing.record.path, missing.record, missing.observed_at, isinstance(missing.record, TableRecord))
        )
    # Publish the observations, because the next plan compares with them.
    publish_observations(context.index, leases[1], result.target, context.run.id, observations)
    result.applied = True


def _find_missing_entries(context: RunContext, rule: MirrorRule) -> RebuildResult:
    """Find the missing entries of a mirror's ledger. Raise StateError for a target that was never crawled."""
    result, mirror = RebuildResult(rule.name, rule.target), mirror_context(context, rule)
    with context.index.read() as connection:
        result.gaps += _coverage_gaps(connection, mirror)
        ledger_state = _LedgerState.read(connection, mirror)
        marked = records.iter_marked_records(connection, rule.target, PREFIX, COMMENT_PREFIX)
        listed = [record for record in marked if ledger_state.missing_reason(record)]
    with opened_as_known(context.index, context.source_spec(rule.target)) as catalog:
        origins = _OriginMatcher(context, mirror)
        for record in listed:
            observed_at = time.time()
            try:
                observed = _observe_record(catalog, record)
            except CatalogError as error:
                result.gaps.append(f"{record.key} could not be observed: {error.message}")
                continue
            if isinstance(observed, UnrecoverableObject):
                result.unrecoverable.append(observed)
            elif not (reason := ledger_state.missing_reason(observed)):
                continue
            elif observed.key in ledger_state.open_paths:
                result.unrecoverable.append(UnrecoverableObject(observed.key, _UNRESOLVED))
            else:
                entry = origins.build_entry(observed, observed_at, reason)
                if isinstance(entry, UnrecoverableObject):
                    result.unrecoverable.append(entry)
                else:
                    result.entries.append(entry)
    return result


def _coverage_gaps(connection: Connection, mirror: MirrorContext) -> list[str]:
    target = mirror.rule.target
    revision = records.published_revision(connection, target)
    if not revision:
        raise StateError(f"{target} has not been crawled yet", hint=f"run: federator crawl {target}")
    gaps = [] if mirror.target.keeps_properties or mirror.target.keeps_comment else [_UNMARKED]
    for key, namespace_coverage in sorted(coverage.read_coverage(connection, target, revision).items()):
        unread = next(
            (
                evidence
                for evidence in (namespace_coverage.presence, namespace_coverage.detail)
                if evidence.state in _UNREAD_STATES
            ),
            None,
        )
        if unread is not None and namespace_coverage.found:
            gaps.append(f"{key or 'the root'} was not read completely: {unread.reason}")
    return gaps


def _observe_record(catalog: Catalog, listed: Record) -> Record | UnrecoverableObject:
    """Return the object's current record. Raise CatalogError if it cannot be observed."""
    if isinstance(listed, TableRecord):
        observation = catalog.observe(listed.path)
        return observation.record or UnrecoverableObject(
            listed.key, f"it is no longer a Lance table: {observation.foreign}" if observation.foreign else "it is absent"
        )
    try:
        return catalog.describe_namespace(listed.path)
    except NamespaceNotFound:
        return UnrecoverableObject(listed.key, "it is absent")


@dataclass(frozen=True, slots=True)
class _LedgerState:
    """The ledger's state of a mirror's target: operations by kind and path, and the paths with open intents."""

    mirror: MirrorContext
    operations: Mapping[tuple[bool, str], str]
    open_paths: Collection[str]

    @classmethod
    def read(cls, connection: Connection, mirror: MirrorContext) -> _LedgerState:
        rule = mirror.rule
        entries = [entry for entry in ledger.list_entries(connection, rule.name) if entry.target_source == rule.target]
        intents = {intent.target_path for intent in journal.list_open_intents(connection, rule.name)}
        return cls(mirror, {(bool(entry.is_table), entry.target_path): entry.op_id for entry in entries}, intents)

    def missing_reason(self, record: Record) -> str:
        """Return why an object with the mirror's marker must be added to the ledger. Empty if it must not, or is already there."""
        marker, is_table = find_bound_marker(record), isinstance(record, TableRecord)
        if marker is None or (marker.instance, marker.mirror) != (self.mirror.instance, self.mirror.rule.name):
            return ""
        operation = self.operations.get((is_table, record.key))
        if operation is None:
            return "it is missing in the ledger"
        # A namespace's marker contains no operation.
        differs = is_table and marker.op_id and operation and marker.op_id != operation
        return f"the ledger has another operation: {operation}" if differs else ""


class _OriginMatcher:
    """Matches objects with this mirror's marker to their origins."""

    def __init__(self, context: RunContext, mirror: MirrorContext) -> None:
        self._context, self._mirror = context, mirror
        self._forwarded: _ForwardedCopies | None = None

    def build_entry(self, record: Record, observed_at: float, reason: str) -> RecoverableEntry | UnrecoverableObject:
        rule, marker = self._mirror.rule, find_bound_marker(record)
        assert marker is not None, "only objects with the mirror's marker are matched"
        origin_path = self._origin_path(record, marker)
        if origin_path is None:
            named = f"its ownership marker names the origin {marker.origin}, but the mirror's origin is {rule.origin}"
            no_copy = (
                f"no table of {rule.origin} is a copy of {marker.origin} and maps to this name, or is a copy with this location; "
                "remove this declaration if it is not needed"
            )
            return UnrecoverableObject(record.key, no_copy if marker.via else named)
        entry = OwnedObject(
            mirror=rule.name, origin_source=rule.origin, origin_path=origin_path, target_source=rule.target, target_path=record.key,
            is_table=int(isinstance(record, TableRecord)), op_id=marker.op_id, native_id=record.native_id, location=record.location,
            mapping_digest=rule.mapping_digest,
        )  # fmt: skip
        if isinstance(record, TableRecord):
            entry = self._with_digests(record, replace(entry, canonical=record.canonical))
        return RecoverableEntry(record, observed_at, reason, entry)

    def _with_digests(self, target: TableRecord, entry: OwnedObject) -> OwnedObject:
        """Add the owned part of the target and, if a plan would change nothing, the digests that mark the entry as unchanged."""
        origin = self._record(entry.origin_path)
        desired = map_table(self._mirror, origin).record if origin is not None else None
        entry = replace(entry, declared=declaration_json(_owned_part(self._mirror.rule, target, desired)))
        if origin is None or assign_cell(self._mirror, origin) != (target.key, None):
            return entry
        row = LedgerRow.from_entry(entry, origin_exists=True)
        inputs = CellInputs(origins=[LazyRecord.from_record(origin)], target=LazyRecord.from_record(target), ledger_rows=[row])
        if decide_cell(self._mirror, CrawlEvidence({}, {}, {}), target.key, inputs):
            return entry
        return replace(entry, origin_digest=origin.digest, target_digest=target.digest)

    def _record(self, path: str) -> TableRecord | None:
        source = self._mirror.rule.origin
        with self._context.index.read() as connection:
            return records.find_table(connection, source, parse_path_key(path))

    def _origin_path(self, record: Record, marker: OwnershipMarker) -> str | None:
        source, _, path = marker.origin.partition("$")
        if not marker.via:
            return path if source == self._mirror.rule.origin else None
        # A chain of mirrors: the marker names the origin of the first one, while this mirror's origin is itself a copy of it.
        if self._forwarded is None:
            self._forwarded = self._read_forwarded_copies()
        named = self._forwarded.by_name.get((marker.origin, record.key))
        if named is not None or not isinstance(record, TableRecord) or record.canonical is None:
            return named
        # If the table was moved at this mirror's origin, only its location shows which one it is. Its old name is then not selected
        # any more: a plan keeps it until a person prunes it.
        moved = self._forwarded.by_location.get((marker.visited_sources, record.canonical), [])
        return moved[0] if len(moved) == 1 else None

    def _read_forwarded_copies(self) -> _ForwardedCopies:
        source, copies = self._mirror.rule.origin, _ForwardedCopies({}, {})
        with self._context.index.read() as connection:
            for record in records.iter_marked_records(connection, source, PREFIX, COMMENT_PREFIX):
                marker = find_bound_marker(record)
                if marker is None or not isinstance(record, TableRecord):
                    continue
                copies.by_name[marker.origin, path_key(map_path(self._mirror, record.path))] = record.key
                if record.canonical is not None:
                    copies.by_location.setdefault(((*marker.visited_sources, source), record.canonical), []).append(record.key)
        return copies


@dataclass(frozen=True, slots=True)
class _ForwardedCopies:
    """The path keys of the tables of a mirror's origin that have a marker themselves.

    They are found by their first origin and their path at the target, and by the sources up to this one and their canonical location.
    """

    by_name: dict[tuple[str, str], str]
    by_location: dict[tuple[tuple[str, ...], str], list[str]]


def _owned_part(rule: MirrorRule, target: TableRecord, desired: TableRecord | None) -> TableRecord:
    """Return the part of the target that the mirror owns: what the current rule asks for and the target has."""
    if desired is None:
        return replace(target, properties={}, doc=None)
    desired_properties = strip_marker_properties(desired.properties)
    doc = strip_comment_marker(desired.doc)
    return replace(
        target,
        location=desired.location if desired.canonical == target.canonical else target.location,
        properties={key: value for key, value in target.properties.items() if key in desired_properties},
        doc=doc if rule.doc and doc == strip_comment_marker(target.doc) else None,
    )
