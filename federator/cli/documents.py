"""The machine-readable formats of data: JSON, JSON lines and CSV, with times in ISO 8601."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from federator.runtime.text import escape_cell, escape_json

_TIMES = frozenset({"at", "as_of", "since", "first_seen", "last_seen"})
# Content that a digest or a hash chain covers: it is printed as it was recorded.
_RECORDED = frozenset({"plan", "detail"})


class Output(StrEnum):
    """Output formats of data."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


def format_document(data: Any, output: Output, rows: str | None = None, keys: Iterable[str] = ()) -> str:
    """Return JSON data in a format other than ``table``, with a line break at its end.

    ``rows`` is the key of the document's list. In JSON lines and CSV, its entries are the lines; without ``rows``, the document is one.
    ``keys`` are those of an entry: the header of an empty list in CSV.
    """
    readable = _with_iso_times(data)
    if output is Output.JSON:
        return _to_json(readable, indent=2) + "\n"
    entries = readable[rows] if rows else [readable]
    if output is Output.JSONL:
        return "".join(_to_json(entry) + "\n" for entry in entries)
    return _format_csv(entries, keys)


def flatten_tree(entries: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield each entry, without its ``children``, before the entries below it."""
    for entry in entries:
        yield {key: value for key, value in entry.items() if key != "children"}
        yield from flatten_tree(entry.get("children", ()))


def _format_csv(entries: Sequence[Mapping[str, Any]], keys: Iterable[str]) -> str:
    """Return a table with a header. Lists and objects are JSON in their cell; null is an empty cell.

    Texts are escaped as in the CSV files of reports.
    """
    stream = io.StringIO()
    keys = dict.fromkeys([key for entry in entries for key in entry] or keys)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(keys)
    writer.writerows([_cell(entry.get(key)) for key in keys] for entry in entries)
    return stream.getvalue()


def _cell(value: Any) -> str:
    return escape_cell(value or "") if value is None or isinstance(value, str) else _to_json(value)


def _to_json(value: Any, indent: int | None = None) -> str:
    return escape_json(json.dumps(value, indent=indent, ensure_ascii=False))


def _with_iso_times(value: Any, key: str = "") -> Any:
    """Return JSON data with times in UTC, as the API gives them. In the index they are seconds since the epoch."""
    if key in _RECORDED:
        return value
    if isinstance(value, float) and (key in _TIMES or key.endswith(("_at", "_since", "_until"))):
        return datetime.fromtimestamp(value, UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {name: _with_iso_times(inner, str(name)) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_iso_times(inner) for inner in value]
    return value
