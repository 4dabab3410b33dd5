"""Identity as evidence: whether the catalog that answered is the one that the index knows. Pure.

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
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from federator.model import NO_IDENTITY, WHOLE, Identity, Record, TableRecord, describe_parts
from federator.planning.marks import bound_mark

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

    ``identity`` is what the readings agree on. ``first`` are values to accept now, ``unknown`` those that only a person accepts;
    both are pairs of scope and value.
    """

    state: IdentityState
    problem: str | None = None
    identity: Identity | None = None
    first: tuple[tuple[str, str], ...] = ()
    unknown: tuple[tuple[str, str], ...] = field(default=())

    @property
    def trusted(self) -> bool:
        return self.state is IdentityState.TRUSTED


def judge(source: str, accepted: Accepted, readings: Sequence[IdentityReading]) -> IdentityVerdict:
    """Compare the readings of one crawl, or of one connection, with each other and with what was accepted for the source."""
    read = [reading for reading in readings if reading.error is None]
    values = _values(read)
    unknown = tuple(
        (scope, value)
        for scope in sorted(values)
        for value in sorted(values[scope])
        if scope in accepted and value not in accepted[scope]
    )
    errors = sorted(reading.error for reading in readings if reading.error is not None)
    if errors:
        return IdentityVerdict(
            IdentityState.UNREADABLE, f"the identity of {source} could not be read: {errors[0]}", unknown=unknown
        )
    mixed = {scope: sorted(found) for scope, found in values.items() if len(found) > 1}
    if mixed:
        shown = " and ".join(_shown(scope, value) for scope, found in sorted(mixed.items()) for value in found)
        if not any(scope in accepted for scope in mixed):
            # Neither was accepted before, so neither is the first: a person chooses.
            unknown = tuple((scope, value) for scope, found in sorted(mixed.items()) for value in found if value)
        held = f"; its mirrors are held until: federator sources confirm {source}" if unknown else ""
        problem = f"two catalogs answered for {source} during one crawl: {shown}{held}"
        return IdentityVerdict(IdentityState.MIXED, problem, unknown=unknown)
    identity = Identity(tuple(sorted((scope, next(iter(found))) for scope, found in values.items()))) if _any(values) else None
    if unknown:
        return IdentityVerdict(IdentityState.CHANGED, changed_text(source, accepted, unknown), identity, unknown=unknown)
    first = (
        () if identity is None else tuple((scope, value) for scope, value in identity.parts if value and scope not in accepted)
    )
    return IdentityVerdict(IdentityState.TRUSTED, None, identity, first)


def changed_text(source: str, accepted: Accepted, unknown: Sequence[tuple[str, str]]) -> str:
    """Describe a changed identity, with both identities and the command that accepts the new one."""
    now = describe_parts(joined(unknown, " and "))
    known = describe_parts({scope: " or ".join(sorted(accepted[scope])) for scope, _ in unknown if scope in accepted})
    return (
        f"another catalog answers for {source}: {now}, known is {known}; "
        f"its mirrors are held until: federator sources confirm {source}"
    )


def joined(parts: Sequence[tuple[str, str]], word: str) -> dict[str, str]:
    """Join the values of each scope, of which there may be several."""
    found: dict[str, str] = {}
    for scope, value in parts:
        shown = value or NO_IDENTITY
        found[scope] = f"{found[scope]}{word}{shown}" if scope in found else shown
    return found


def judge_as_confirmed(
    source: str, accepted: Accepted, seen: Sequence[tuple[str, str]], reading: IdentityReading
) -> IdentityVerdict:
    """Judge a reading as if the identities that wait (``seen``, pairs of scope and value) were accepted."""
    values: dict[str, set[str]] = {scope: set(found) for scope, found in accepted.items()}
    for scope, value in seen:
        values.setdefault(scope, set()).add(value)
    return judge(source, values, [reading])


def rebinds(row: Mapping[str, Any], record: Record, instance: str) -> bool:
    """Tell whether an object of a confirmed catalog is the one of a ledger row: its mark, operation and location are intact.

    Its native id is another one, because a migrated catalog hands out new ones.
    """
    mark = bound_mark(record)
    if mark is None or record.native_id == row["native_id"]:
        return False
    moved = isinstance(record, TableRecord) and record.canonical != row["canonical"]
    return not moved and (mark.instance, mark.mirror, mark.op_id) == (instance, row["mirror"], row["op_id"])


def _values(readings: Sequence[IdentityReading]) -> dict[str, set[str]]:
    """Values by scope. A catalog without identity states an empty one, if another reading or the accepted set has one."""
    values: dict[str, set[str]] = {}
    for reading in readings:
        for scope, value in reading.identity.parts if reading.identity is not None else ((WHOLE, ""),):
            values.setdefault(scope, set()).add(value)
    return values


def _any(values: Mapping[str, Collection[str]]) -> bool:
    return any(value for found in values.values() for value in found)


def _shown(scope: str, value: str) -> str:
    return describe_parts({scope: value})
