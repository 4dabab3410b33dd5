"""Types of fields that the API shows as they are, with their form in its JSON.

The objects of ``store`` and ``views`` are frozen dataclasses. FastAPI serves them, and the command line prints their fields. Their
docstrings and ``pydantic.Field`` annotations document the API.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import PlainSerializer
from sqlalchemy import Column, Table


def _to_utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


#: a time in seconds since the epoch; ISO 8601 in UTC in the API
Timestamp = Annotated[float, PlainSerializer(_to_utc, return_type=datetime)]
OptionalTimestamp = Timestamp | None


def columns_of(table: Table, kind: type) -> list[Column[Any]]:
    """Return the columns of a table that have the names of a dataclass's fields."""
    return [table.c[field.name] for field in fields(kind)]
