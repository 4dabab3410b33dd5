"""Limits of one request for a table's data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from federator.connector import InvalidInput

if TYPE_CHECKING:
    # Only for types: the child processes import this module, and settings take them time to start.
    from federator.settings.sections import DataSettings

CONFIG_SECTION = "[serve.data]"


@dataclass(frozen=True, slots=True)
class DataLimits:
    """The maximum ``rows`` and ``bytes`` (Arrow, in memory) of a response, ``bytes`` of a request body, and ``seconds`` of work.

    ``memory`` is the maximum of resident bytes of the process that does the work.
    """

    rows: int
    seconds: float
    bytes: int
    memory: int

    @classmethod
    def from_settings(cls, data: DataSettings) -> DataLimits:
        """Return the limits of ``[serve.data]``."""
        return cls(data.max_rows, data.max_seconds, data.max_bytes, data.max_memory)

    def check(self, rows: int, size: int) -> None:
        """Raise InvalidInput with the name of an exceeded limit."""
        if rows > self.rows:
            raise InvalidInput(
                f"the response has more rows than the limit: {CONFIG_SECTION} max_rows = {self.rows}",
                hint="use a smaller k, or a filter",
            )
        if size > self.bytes:
            raise InvalidInput(
                f"the response has more bytes than the limit: {CONFIG_SECTION} max_bytes = {self.bytes}",
                hint="request fewer columns or rows",
            )
