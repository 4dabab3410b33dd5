"""What a report says, before it has a form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Section:
    """One answer: its first rows, and how many there are."""

    shape: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    total: int

    @property
    def more(self) -> int:
        return self.total - len(self.rows)


@dataclass(frozen=True, slots=True)
class Report:
    """A report of a kind at a time (seconds since the epoch), with the number of its details and the files that hold them."""

    kind: str
    at: float
    sections: Sequence[Section]
    details: int
    files: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        """As JSON data; times in UTC."""
        return {
            "report": self.kind,
            "made_at": utc(self.at),
            "details": {"rows": self.details, "files": list(self.files)},
            "sections": [
                {
                    "title": section.title or "figures",
                    "shape": section.shape,
                    "columns": list(section.columns),
                    "rows": [
                        [plain(name, value) for name, value in zip(section.columns, row, strict=True)] for row in section.rows
                    ],
                    "total": section.total,
                }
                for section in self.sections
            ],
        }


def plain(column: str, value: Any) -> Any:
    """A value as JSON has it: times (columns that end in ``_at``) as ISO 8601 in UTC."""
    return utc(value) if column.endswith("_at") and value is not None else value


def utc(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
