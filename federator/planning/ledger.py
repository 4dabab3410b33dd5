"""The entries of the ledger: objects of a target that a mirror owns."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedObject:
    """An entry of the ledger, with one field for each column.

    ``is_table`` is 1 for a table and 0 for a namespace. ``origin_digest`` and ``target_digest`` are those of the last change, and
    ``declared`` is JSON of what it declared (``decision.declaration_json``). ``updated_at`` is in seconds since the epoch.
    """

    mirror: str
    origin_source: str
    origin_path: str
    target_source: str
    target_path: str
    is_table: int
    op_id: str
    native_id: str | None = None
    location: str | None = None
    canonical: str | None = None
    origin_digest: str | None = None
    target_digest: str | None = None
    mapping_digest: str | None = None
    declared: str | None = None
    run_id: str = ""
    updated_at: float = 0.0

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """The key of the entry. It contains no location."""
        return self.mirror, self.origin_source, self.origin_path, self.target_path, self.is_table

    def to_json(self) -> dict[str, Any]:
        """Return the entry as audit events contain it: every column except ``updated_at``."""
        return {name: value for name, value in asdict(self).items() if name != "updated_at"}
