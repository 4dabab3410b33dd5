"""The interface of a credential vendor: a grant goes in, temporary credentials come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from federator.connector.storage_options import option_name
from federator.model import Path, TableRecord

#: when the credentials expire, in milliseconds since the epoch; Lance describes the table again shortly before
EXPIRES_AT = "expires_at_millis"


class Access(Enum):
    """What a principal may do with the files of a table. ``WRITE`` includes reading."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class TableGrant:
    """The use of one table by one principal. ``path`` starts at the tree root."""

    source: str
    path: Path
    record: TableRecord
    access: Access
    principal: str

    @property
    def location(self) -> str:
        """The location of the table; empty if its catalog has none."""
        return self.record.location or ""


@dataclass(frozen=True, slots=True)
class VendedCredentials:
    """Temporary credentials. ``options`` have the names of Lance's storage options, without ``expires_at_millis``.

    ``issued_at`` and ``expires_at`` are in seconds since the epoch. ``method`` is the value of ``vend`` by which they were issued, and
    ``issuer`` says who issued them, both for the audit log.
    """

    options: Mapping[str, str] = field(repr=False)
    issued_at: float
    expires_at: float
    issuer: str
    method: str

    def storage_options(self, source_options: Mapping[str, str]) -> dict[str, str]:
        """Return the storage options for a client: the plain ones of the source, and these credentials with their expiry.

        A vended option replaces that of the source also under another spelling, such as ``region`` for ``aws_region``.
        """
        # With skip_signature, Lance would not sign its requests with these credentials.
        replaced = {option_name(key) for key in self.options} | {"skip_signature"}
        remaining = {key: value for key, value in source_options.items() if option_name(key) not in replaced}
        return {**remaining, **self.options, EXPIRES_AT: str(int(self.expires_at * 1000))}


class CredentialVendor(Protocol):
    """Issues temporary credentials for the tables of one source. Safe for threads."""

    @property
    def method(self) -> str:
        """The value of ``vend`` that selects this vendor."""
        ...

    def applies_to(self, location: str) -> bool:
        """Return whether tables at a location need credentials that this vendor could issue."""
        ...

    def issue(self, grant: TableGrant) -> VendedCredentials:
        """Issue credentials that allow exactly what is granted.

        Raise Unsupported or InvalidInput if the location cannot be limited to one table, PermissionDenied if the issuer refuses,
        ServiceUnavailable or Throttled if it does not respond, ConfigError if the source lacks settings.
        """
        ...

    def check(self) -> str:
        """Test the issuer without a grant, and return the result as text. Raise a FederatorError if the test fails."""
        ...
