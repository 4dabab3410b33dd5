"""Identity evidence: tell whether the catalog that responds is the one that the index knows. Pure.

::

    readings of one crawl or connection                    verdict
    -----------------------------------------------------  -----------------------------------------------------------
    one of them failed                                     unreadable: nothing is proven
    two of them differ in a scope                          mixed: nothing is proven
    a scope has a value that was never accepted            changed: nothing is proven, and the source's mirrors are held
    the whole source had an identity, and has none now     changed
    a scope has a value for the first time                 trusted, and the value is accepted
    every value was accepted                               trusted
    no reading has an identity, and none was ever known    trusted: this catalog has none
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from federator.model import NO_IDENTITY, WHOLE, Identity, Record, TableRecord, describe_parts
from federator.planning.ledger import OwnedObject
from federator.planning.ownership import find_bound_marker

#: the hold of a mirror whose origin or target may be another catalog
IDENTITY_CHANGED = "identity_changed"
#: accepted values by scope
Accepted = Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class IdentityReading:
    """The identity that one connection returned; None where the catalog has none. ``error`` is set if it could not be read."""

    identity: Identity | None = None
    error: str | None = None


class IdentityState(StrEnum):
    TRUSTED = "trusted"
    CHANGED = "changed"
    MIXED = "mixed"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class IdentityVerdict:
    """``problem`` is None for trusted readings, else the text for people.

    ``identity`` is the value on which the readings agree. ``first_values`` are accepted now: their scopes had no value yet.
    ``unknown`` ones need a confirmation. Both are pairs of scope and value.
    """

    state: IdentityState
    problem: str | None = None
    identity: Identity | None = None
    first_values: tuple[tuple[str, str], ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()

    @property
    def trusted(self) -> bool:
        return self.state is IdentityState.TRUSTED


def judge_identity(source: str, accepted: Accepted, readings: Sequence[IdentityReading]) -> IdentityVerdict:
    """Compare the readings of one crawl, or of one connection, with each other and with what was accepted for the source."""
    readable = [reading for reading in readings if reading.error is None]
    values_by_scope = _group_by_scope(readable)
    unknown = tuple(
        (scope, value)
        for scope in sorted(values_by_scope)
        for value in sorted(values_by_scope[scope])
        if scope in accepted and value not in accepted[scope]
    )
    errors = sorted(reading.error for reading in readings if reading.error is not None)
    if errors:
        remedy = f"repeat it when the catalog answers: federator crawl {source}"
        problem = (
            f"the identity of {source} could not be read, so this crawl proves nothing; {remedy}; its error was: {errors[0]}"
        )
        return IdentityVerdict(IdentityState.UNREADABLE, problem, unknown=unknown)
    mixed = {scope: sorted(values) for scope, values in values_by_scope.items() if len(values) > 1}
    if mixed:
        listed = " and ".join(_format_value(scope, value) for scope, values in sorted(mixed.items()) for value in values)
        if not any(scope in accepted for scope in mixed):
            # No value of these scopes is accepted yet, and nothing tells which of the two is right: a person confirms.
            unknown = tuple((scope, value) for scope, values in sorted(mixed.items()) for value in values if value)
        hold_note = f"; its mirrors are held until: {confirm_command(source)}" if unknown else ""
        problem = f"two catalogs responded for {source} during one crawl: {listed}{hold_note}"
        return IdentityVerdict(IdentityState.MIXED, problem, unknown=unknown)
    identity = (
        Identity(tuple(sorted((scope, next(iter(values))) for scope, values in values_by_scope.items())))
        if _has_values(values_by_scope)
        else None
    )
    if unknown:
        return IdentityVerdict(IdentityState.CHANGED, changed_text(source, accepted, unknown), identity, unknown=unknown)
    parts = () if identity is None else identity.parts
    first_values = tuple((scope, value) for scope, value in parts if value and scope not in accepted)
    return IdentityVerdict(IdentityState.TRUSTED, None, identity, first_values)


@dataclass(frozen=True, slots=True)
class KnownIdentities:
    """The identities of a source in the index, as pairs of scope and value. The mirrors are held while one is ``unconfirmed``."""

    accepted: frozenset[tuple[str, str]] = frozenset()
    unconfirmed: tuple[tuple[str, str], ...] = ()

    @property
    def by_scope(self) -> Accepted:
        return {scope: {value for value_scope, value in self.accepted if value_scope == scope} for scope, _ in self.accepted}

    def describe_hold(self, source: str) -> str | None:
        """Return why the mirrors of the source are held: the text with both identities. None if no identity is unconfirmed."""
        return changed_text(source, self.by_scope, self.unconfirmed) if self.unconfirmed else None

    def judge(
        self, source: str, readings: Sequence[IdentityReading], *, crawl: bool
    ) -> tuple[IdentityVerdict, KnownIdentities]:
        """Judge readings, and return the known identities afterwards.

        Unconfirmed identities are kept until a ``crawl`` reads every identity: then those that it found replace them.
        """
        verdict = judge_identity(source, self.by_scope, readings)
        replaces = crawl and readings and verdict.state is not IdentityState.UNREADABLE
        unconfirmed = {*verdict.unknown} if replaces else {*self.unconfirmed, *verdict.unknown}
        return verdict, KnownIdentities(self.accepted | {*verdict.first_values}, tuple(sorted(unconfirmed)))


def changed_text(source: str, accepted: Accepted, unknown: Sequence[tuple[str, str]]) -> str:
    """Describe a changed identity, with both identities and the command that accepts the new one."""
    current = describe_parts(join_values(unknown, " and "))
    known = describe_parts({scope: " or ".join(sorted(accepted[scope])) for scope, _ in unknown if scope in accepted})
    return (
        f"another catalog responds for {source}: {current}, known is {known}; "
        f"its mirrors are held until: {confirm_command(source)}"
    )


def confirm_command(source: str) -> str:
    """Return the command that accepts the unconfirmed identities of a source."""
    return f"federator sources confirm {source}"


def join_values(parts: Sequence[tuple[str, str]], separator: str) -> dict[str, str]:
    """Join the values of each scope; a scope may have several."""
    values_by_scope: dict[str, str] = {}
    for scope, value in parts:
        text = value or NO_IDENTITY
        values_by_scope[scope] = f"{values_by_scope[scope]}{separator}{text}" if scope in values_by_scope else text
    return values_by_scope


def judge_confirmed_identity(
    source: str, accepted: Accepted, unconfirmed: Sequence[tuple[str, str]], reading: IdentityReading
) -> IdentityVerdict:
    """Judge a reading as if the unconfirmed identities were accepted, too."""
    values_by_scope: dict[str, set[str]] = {scope: set(values) for scope, values in accepted.items()}
    for scope, value in unconfirmed:
        values_by_scope.setdefault(scope, set()).add(value)
    return judge_identity(source, values_by_scope, [reading])


def can_rebind(entry: OwnedObject, record: Record, instance: str, indexed: Record | None) -> bool:
    """Return whether a ledger entry can take the native id of a record of the confirmed catalog: marker and location are intact.

    A migrated catalog assigns new native ids. ``indexed`` is the index's record at the path, from the catalog before. If its native
    id was not that of the entry, another object had replaced the owned one, and the migrated object is that other one.
    """
    marker = find_bound_marker(record)
    if marker is None or record.native_id == entry.native_id:
        return False
    if indexed is not None and indexed.native_id != entry.native_id:
        return False
    moved = isinstance(record, TableRecord) and record.canonical != entry.canonical
    return not moved and (marker.instance, marker.mirror, marker.op_id) == (instance, entry.mirror, entry.op_id)


def _group_by_scope(readings: Sequence[IdentityReading]) -> dict[str, set[str]]:
    """Return values by scope. A catalog without identity counts as an empty value of the whole source."""
    values: dict[str, set[str]] = {}
    for reading in readings:
        for scope, value in reading.identity.parts if reading.identity is not None else ((WHOLE, ""),):
            values.setdefault(scope, set()).add(value)
    return values


def _has_values(values_by_scope: Mapping[str, Collection[str]]) -> bool:
    return any(value for values in values_by_scope.values() for value in values)


def _format_value(scope: str, value: str) -> str:
    return describe_parts({scope: value})
