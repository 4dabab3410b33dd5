"""Operations on mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries whose value is not None."""
    return {key: value for key, value in values.items() if value is not None}
