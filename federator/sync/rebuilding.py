"""Rebuild the ledger: what a target holds with our mark, and the ledger does not know, is taken in again.

For an index that was lost or comes from an old backup. The index's current state of the target names the objects, a direct look at
each decides; the catalog is never changed. An entry claims no more than the mark and the mirror's rule prove: what we cannot prove to
have set stays the target's own, and the next plan compares the rest anew.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from federator.connector import Catalog, CatalogError, NamespaceNotFound, StateError
from federator.index import Connection, audit_log, coverage, journal, ledger, records
from federator.index.leases import Lease, hold
from federator.index.observed import Observed, publish_observed
from federator.model import CoverageState, Record, TableRecord, parse_key, path_key
from federator.model.rows import namespace_record, table_record
from federator.planning.cells import LedgerRow, Member, Members, decide_members, place
from federator.planning.decide import Knowledge, declaration
from federator.planning.mapping import MirrorContext, desire, target_path
from federator.planning.marks import PREFIX, Mark, bound_mark, plain_doc, unmarked
from federator.planning.rule import MirrorRule
from federator.sync.identities import opened_as_known
from federator.sync.mirroring import context_of
from federator.sync.result import counted
from federator.sync.work import LEASE_PATIENCE, Work

_UNREAD = (CoverageState.FAILED, CoverageState.SKIPPED)
_UNMARKED = "the catalog keeps neither properties nor comments: no mark tells which of its tables are ours"
_UNSETTLED = "the fate of a call there is not known yet; the next run finds it out"


@dataclass(frozen=True, slots=True)
class Entry:
    """An object, as a look at the time ``at`` found it, that belongs into a mirror's ledger, and ``why``; ``row`` are the ledger's
    columns but for the run's id."""

    record: Record
    at: float
    why: str
    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Left:
    """An object with our mark that cannot be taken in, by its path in text form."""

    target_path: str
    why: str


@dataclass
class Rebuilt:
    """What a mirror's ledger lacks. ``gaps`` say where nobody knows what is ours; ``entered``: the ledger has the entries now."""

    mirror: str
    target: str
    entries: list[Entry] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    entered: bool = False


def rebuild(work: Work, rules: Sequence[MirrorRule], *, enter: bool) -> None:
    """Finds what the mirrors' ledgers lack; with ``enter`` writes it, each object in a transaction of its own."""
    for rule in rules:
        with work.recording(f"mirror {rule.name}"), work.step("rebuild", rule.name) as done:
            if enter:
                with _leases(work, rule) as leases:
                    found = _find(work, rule)
                    _enter(work, found, leases)
            else:
                found = _find(work, rule)
            work.result.rebuilt.append(found)
            done("partial" if found.gaps else "ok", f"{counted(len(found.entries), 'object')} that the ledger does not know")


@contextmanager
def _leases(work: Work, rule: MirrorRule) -> Iterator[tuple[Lease, Lease]]:
    """The mirror's and the target's, in the order in which apply holds them."""
    with (
        hold(work.index, f"mirror:{rule.name}", wait=LEASE_PATIENCE) as of_mirror,
        hold(work.index, f"source:{rule.target}", wait=LEASE_PATIENCE) as of_target,
    ):
        yield of_mirror, of_target


def _enter(work: Work, found: Rebuilt, leases: tuple[Lease, Lease]) -> None:
    seen = []
    for entry in found.entries:
        row = {**entry.row, "run_id": work.run.id}
        subject = f"{found.target}${row['target_path']}"
        with work.index.write() as connection:
            for lease in leases:
                lease.check(connection)
            # One mirror's mark is on it: whatever others knew of the name is history.
            ledger.forget_target(connection, row, every_mirror=True)
            ledger.put(connection, row)
            detail = {"why": entry.why, **row}
            audit_log.append(
                connection, "ledger_rebuilt", actor=work.run.actor, run_id=work.run.id, subject=subject, detail=detail
            )
        seen.append(Observed(entry.record.path, entry.record, entry.at, isinstance(entry.record, TableRecord)))
    # What was seen now is what the next plan compares with.
    publish_observed(work.index, leases[1], found.target, work.run.id, seen)
    found.entered = True


def _find(work: Work, rule: MirrorRule) -> Rebuilt:
    """Raises StateError for a target that was never crawled."""
    found, context = Rebuilt(rule.name, rule.target), context_of(work, rule)
    with work.index.read() as connection:
        found.gaps += _gaps(connection, context)
        known = _Known.read(connection, context)
        listed = [record for record in _with_marks(connection, rule.target) if known.lacks(record)]
    with opened_as_known(work.index, work.spec(rule.target)) as catalog:
        origins = _Origins(work, context)
        for record in listed:
            at = time.time()
            try:
                seen = _look(catalog, record)
            except CatalogError as error:
                found.gaps.append(f"{record.key} could not be looked at: {error.message}")
                continue
            if isinstance(seen, Left):
                found.left.append(seen)
            elif why := known.lacks(seen):
                entry = origins.entry(seen, at, why) if seen.key not in known.open else Left(seen.key, _UNSETTLED)
                if isinstance(entry, Left):
                    found.left.append(entry)
                else:
                    found.entries.append(entry)
    return found


def _gaps(connection: Connection, context: MirrorContext) -> list[str]:
    target = context.rule.target
    revision = records.published(connection, target)
    if not revision:
        raise StateError(f"the index knows nothing of {target} yet", hint=f"federator crawl {target} reads it")
    gaps = [] if context.target.keeps_properties or context.target.keeps_comment else [_UNMARKED]
    for key, each in sorted(coverage.read(connection, target, revision).items()):
        unread = next((evidence for evidence in (each.presence, each.detail) if evidence.state in _UNREAD), None)
        if unread is not None and each.found:
            gaps.append(f"{key or 'the root'} was not read in full: {unread.reason}")
    return gaps


def _with_marks(connection: Connection, source: str) -> Iterator[Record]:
    """A source's objects in the index that say anything of a mark, namespaces before what is in them."""
    for row in records.subtree(connection, source):
        if f'"{PREFIX}' in row["properties"] or "[federator " in (row["doc"] or ""):
            yield table_record(source, dict(row)) if row["is_table"] else namespace_record(source, dict(row))


def _look(catalog: Catalog, listed: Record) -> Record | Left:
    """The object as it is now. Raises CatalogError where nobody can tell."""
    if isinstance(listed, TableRecord):
        seen = catalog.observe(listed.path)
        return seen.record or Left(listed.key, f"it is no Lance table now: {seen.foreign}" if seen.foreign else "it is gone")
    try:
        return catalog.describe_namespace(listed.path)
    except NamespaceNotFound:
        return Left(listed.key, "it is gone")


@dataclass(frozen=True, slots=True)
class _Known:
    """What the ledger has of a mirror's target: operations by kind and path; and the paths with ``open`` intents."""

    context: MirrorContext
    operations: Mapping[tuple[bool, str], str]
    open: Collection[str]

    @classmethod
    def read(cls, connection: Connection, context: MirrorContext) -> _Known:
        rule = context.rule
        entries = [row for row in ledger.of_mirror(connection, rule.name) if row["target_source"] == rule.target]
        intents = {row["target_path"] for row in journal.open_intents(connection, rule.name)}
        return cls(context, {(bool(row["is_table"]), row["target_path"]): row["op_id"] for row in entries}, intents)

    def lacks(self, record: Record) -> str:
        """Why an object with the mirror's mark belongs into the ledger; empty where it does not, or is there."""
        mark, is_table = bound_mark(record), isinstance(record, TableRecord)
        if mark is None or (mark.instance, mark.mirror) != (self.context.instance, self.context.rule.name):
            return ""
        operation = self.operations.get((is_table, record.key))
        if operation is None:
            return "the ledger does not know it"
        # A namespace's mark names no operation.
        other = is_table and mark.op_id and operation and mark.op_id != operation
        return f"the ledger knows the operation {operation}" if other else ""


class _Origins:
    """Brings objects with our mark together with their origins."""

    def __init__(self, work: Work, context: MirrorContext) -> None:
        self._work, self._context = work, context
        self._forwarded: Mapping[tuple[str, str], str] | None = None

    def entry(self, record: Record, at: float, why: str) -> Entry | Left:
        rule, mark = self._context.rule, bound_mark(record)
        assert mark is not None, "only what carries the mirror's mark is asked for"
        origin_path = self._origin_path(record, mark)
        if origin_path is None:
            return Left(record.key, f"its mark names the origin {mark.origin}, and the mirror reads {rule.origin}")
        row: dict[str, Any] = {
            "mirror": rule.name, "origin_source": rule.origin, "origin_path": origin_path,
            "target_source": rule.target, "target_path": record.key, "is_table": int(isinstance(record, TableRecord)),
            "op_id": mark.op_id, "native_id": record.native_id, "location": record.location, "canonical": None, "origin_digest": None,
            "target_digest": None, "mapping_digest": rule.mapping_digest, "declared": None,
        }  # fmt: skip
        if isinstance(record, TableRecord):
            row |= {"canonical": record.canonical, **self._compared(record, row)}
        return Entry(record, at, why, row)

    def _compared(self, target: TableRecord, row: Mapping[str, Any]) -> dict[str, str | None]:
        """What of the target is ours; and, where the plan would leave all as it is, the digests that say so."""
        origin = self._record(row["origin_path"])
        wanted = desire(self._context, origin).record if origin is not None else None
        declared = declaration(_claimed(self._context.rule, target, wanted))
        if origin is None or place(self._context, origin) != (target.key, None):
            return {"declared": declared}
        entry = LedgerRow.of({**row, "declared": declared, "origin_there": True})
        members = Members(wanted=[Member.of(origin)], target=Member.of(target), entries=[entry])
        if decide_members(self._context, Knowledge({}, {}, {}), target.key, members):
            return {"declared": declared}
        return {"declared": declared, "origin_digest": origin.digest, "target_digest": target.digest}

    def _record(self, path: str) -> TableRecord | None:
        source = self._context.rule.origin
        with self._work.index.read() as connection:
            row = records.get(connection, source, parse_key(path), is_table=True)
        return table_record(source, dict(row)) if row is not None else None

    def _origin_path(self, record: Record, mark: Mark) -> str | None:
        source, _, path = mark.origin.partition("$")
        if not mark.via:
            return path if source == self._context.rule.origin else None
        # The mark keeps the first origin: ours is the copy that was forwarded.
        if self._forwarded is None:
            self._forwarded = self._copies()
        return self._forwarded.get((mark.origin, record.key))

    def _copies(self) -> dict[tuple[str, str], str]:
        """The origin's tables that carry a mark themselves, by their first origin and their path at the target."""
        source = self._context.rule.origin
        with self._work.index.read() as connection:
            marked = [(each, bound_mark(each)) for each in _with_marks(connection, source) if isinstance(each, TableRecord)]
        return {
            (mark.origin, path_key(target_path(self._context, each.path))): each.key
            for each, mark in marked
            if mark is not None
        }


def _claimed(rule: MirrorRule, target: TableRecord, wanted: TableRecord | None) -> TableRecord:
    """The part of the target that comes from us: what the rule asks for today and the target has."""
    if wanted is None:
        return replace(target, properties={}, doc=None)
    asked = unmarked(wanted.properties)
    doc = plain_doc(wanted.doc)
    return replace(
        target,
        location=wanted.location if wanted.canonical == target.canonical else target.location,
        properties={key: value for key, value in target.properties.items() if key in asked},
        doc=doc if rule.doc and doc == plain_doc(target.doc) else None,
    )
