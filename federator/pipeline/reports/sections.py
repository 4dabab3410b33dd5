"""The content of a report, independent of its format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from federator.runtime.text import format_utc


@dataclass(frozen=True, slots=True)
class Section:
    """One query result: its first rows, and the total number of rows."""

    #: how it is shown: ``tiles``, ``table``, ``bars`` or ``lines``
    shape: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    total: int

    @property
    def hidden_rows(self) -> int:
        return self.total - len(self.rows)


@dataclass(frozen=True, slots=True)
class Report:
    """A report of a kind at a time (seconds since the epoch), with the number of its details and the names of their files."""

    kind: str
    at: float
    sections: Sequence[Section]
    details: int
    files: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON data, with times in UTC."""
        return {
            "report": self.kind,
            "made_at": format_utc(self.at),
            "details": {"rows": self.details, "files": list(self.files)},
            "sections": [
                {
                    "title": section.title or "figures",
                    "shape": section.shape,
                    "columns": list(section.columns),
                    "rows": [
                        [to_json_value(name, value) for name, value in zip(section.columns, row, strict=True)]
                        for row in section.rows
                    ],
                    "total": section.total,
                }
                for section in self.sections
            ],
        }


def to_json_value(column: str, value: Any) -> Any:
    """Convert a value for JSON: times (columns that end in ``_at``) become ISO 8601 in UTC."""
    return format_utc(value) if column.endswith("_at") and value is not None else value
