"""Answer: what a server said to one request."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from federator.connector import CatalogError, Internal
from federator.connector.shapes import Shape, mismatch

_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """One response. ``about`` says what was asked, for error messages (``lake: listing the tables of a$b``)."""

    about: str
    status: int
    text: str
    content_type: str = ""
    retry_after: float | None = None

    @property
    def data(self) -> Any:
        """The body as JSON data. Raises Internal where a success is no JSON: such an answer must not pass for an empty one."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            raise Internal(f"{self.about}: the server's answer ({self.status}) is not JSON: {self.excerpt}") from None

    @property
    def fields(self) -> dict[str, Any]:
        """The body as a JSON object. Raises Internal where it is anything else."""
        data = self.data
        if not isinstance(data, dict):
            raise Internal(f"{self.about}: the server's answer ({self.status}) is no JSON object: {self.excerpt}")
        return data

    def fitting(self, shape: Shape) -> dict[str, Any]:
        """The body as a JSON object of a shape. Raise Internal for a field that is missing or of another type."""
        fields = self.fields
        problem = mismatch(fields, shape)
        if problem:
            raise Internal(f"{self.about}: the server's response ({self.status}) lacks what it always has: {problem}")
        return fields

    def without_body(self) -> None:
        """Raise Internal for a success that says something where the server says nothing: another server or a proxy answered."""
        if self.text.strip():
            raise Internal(f"{self.about}: the server's response ({self.status}) is not empty, as it always is: {self.excerpt}")

    @property
    def error_fields(self) -> dict[str, Any]:
        """The body of an error, as far as it is a JSON object; empty where it is not (401s often have no body)."""
        try:
            data = json.loads(self.text)
        except (ValueError, RecursionError):
            return {}
        return data if isinstance(data, dict) else {}

    @property
    def excerpt(self) -> str:
        """The body's beginning on one line, for a person."""
        line = " ".join(self.text.split())
        return f"{line[:_SHOWN]}…" if len(line) > _SHOWN else line or "(empty)"


#: turns an answer that is no success into an error; one function per connector
ErrorOf = Callable[[Answer], CatalogError]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How a server is trusted and shown who we are. ``ca`` is a file of certificates; None trusts what the system trusts."""

    verify: bool = True
    ca: str | None = None
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)

    @property
    def requests_verify(self) -> bool | str:
        return self.ca or True if self.verify else False

    @property
    def requests_certificate(self) -> str | tuple[str, str] | None:
        return (self.certificate, self.key) if self.certificate and self.key else self.certificate
