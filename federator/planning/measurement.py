"""What guards measure. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a guard measured for a plan, whether it holds the plan or not.

    ``measured`` counts changes, tables or namespaces. ``limit`` is the largest allowed count; if there is a ``total``, the largest
    allowed percentage of it; None if the guard checks a condition. ``namespace`` is the path key of the namespace that is nearest to
    its limit, or beyond it; None if the guard measures the whole plan.
    """

    guard: str
    measured: int
    limit: float | None = None
    total: int | None = None
    namespace: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of ``to_json``."""
        return cls(**data)
