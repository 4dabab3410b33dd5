"""How much one request for a table's data may take."""

from __future__ import annotations

from dataclasses import dataclass

from federator.connector import InvalidInput

SECTION = "[serve.data]"


@dataclass(frozen=True, slots=True)
class DataLimits:
    """The most ``rows`` and ``bytes`` (Arrow, in memory) of an answer, ``bytes`` of a body, and ``seconds`` of work."""

    rows: int = 1_000_000
    seconds: float = 60.0
    bytes: int = 256 << 20

    def check(self, rows: int, size: int) -> None:
        """Raises InvalidInput that names the limit which an answer has gone beyond."""
        if rows > self.rows:
            raise InvalidInput(
                f"the answer has more rows than the limit: {SECTION} max_rows = {self.rows}", hint="a smaller k, or a filter"
            )
        if size > self.bytes:
            raise InvalidInput(
                f"the answer has more bytes than the limit: {SECTION} max_bytes = {self.bytes}", hint="fewer columns or rows"
            )
