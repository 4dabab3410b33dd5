"""What is stored at the locations that a plan declares, moves or deregisters, as verification last found it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from federator.model import canonical_location
from federator.store import Connection, verifications
from federator.store.field_types import Timestamp
from federator.store.verifications import SourceLocation


@dataclass(frozen=True, slots=True)
class ChangeContent:
    """The stored content at the location of a change: that of the declaration after it, or of the one that it removes."""

    change: Annotated[int, Field(examples=[0], description="position in the plan's `changes`, from 0")]
    state: Annotated[str, Field(examples=["valid"], description="verification state")]
    version: int | None
    rows: int | None
    checked_at: Timestamp


def list_change_contents(connection: Connection, changes: Iterable[Mapping[str, Any]]) -> list[ChangeContent]:
    """Return the content of each change whose location was inspected, in the order of the changes."""
    located = list(_iter_locations(changes))
    stored = verifications.list_verifications(connection, {location for _, location in located})
    verified = [(number, stored[location]) for number, location in located if location in stored]
    return [
        ChangeContent(number, verification.state, verification.version, verification.rows, verification.checked_at)
        for number, verification in verified
    ]


def _iter_locations(changes: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, SourceLocation]]:
    """Yield the number of each change with a source whose storage options open its location, and the canonical location.

    A declaration is opened with the options of its origin, or of its target if a user declares the table. A deregistered table is
    opened with those of its target. ``changes`` have the form of ``Change.to_json``.
    """
    for number, change in enumerate(changes):
        after, before = change.get("after"), change.get("before")
        record, source = (
            (after, change["origin_source"] or change["target_source"]) if after else (before, change["target_source"])
        )
        if record and record.get("location"):
            yield number, (source, canonical_location(record["location"]))
