"""Principals and their permissions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from federator.connector import PermissionDenied
from federator.model import Path, path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.settings import SourceSettings
from federator.vending import Access


class Role(IntEnum):
    """Each role includes the previous ones. A viewer reads; an operator also starts and cancels runs and decides on plans; a writer
    also writes to catalogs and tables; an admin can do everything."""

    VIEWER = 1
    OPERATOR = 2
    WRITER = 3
    ADMIN = 4

    @classmethod
    def parse(cls, text: str) -> Role:
        """Return the role of a name. Raise ValueError, which lists the roles, if there is none."""
        try:
            return cls[text.upper()]
        except KeyError:
            raise ValueError(f"{text!r} is not a role, allowed: {', '.join(ROLES)}") from None


#: the names of the roles, the weakest first
ROLES = tuple(role.name.lower() for role in Role)


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated principal. `name` is recorded as the actor of runs, journal lines and audit events."""

    name: str
    role: Role
    scopes: Scopes

    def is_allowed(self, role: Role, path: Path | None = None) -> bool:
        """Whether the principal has at least ``role`` and, if a path is given, its scopes cover this path."""
        return self.role >= role and (path is None or self.scopes.covers(path))

    def require(self, role: Role, path: Path | None = None) -> None:
        """Raise PermissionDenied unless the principal has at least ``role`` and, if a path is given, its scopes cover this path.

        Call it before any lookup: then the response depends only on the principal and does not reveal which objects exist.
        """
        if self.role < role:
            raise PermissionDenied(
                f"this operation needs the role {role.name.lower()}; {self.name} has {self.role.name.lower()}"
            )
        if path is not None and not self.scopes.covers(path):
            raise PermissionDenied(f"{path_key(path) or 'the tree root'} is outside the scopes of {self.name}")

    def require_full_scope(self, role: Role) -> None:
        """Raise PermissionDenied unless the principal has at least ``role`` and the scope '*'. For responses about the whole tree."""
        self.require(role)
        if not self.scopes.covers_all:
            scopes = ", ".join(self.scopes.texts) or "none"
            raise PermissionDenied(f"this operation needs the scope '*'; {self.name} has the scopes {scopes}")


#: the principal of requests without a credential, where none is required: this machine's own user
LOCAL_PRINCIPAL = Principal("api", Role.ADMIN, EVERYTHING)
#: the principal of paths that need no credential
ANONYMOUS = Principal("nobody", Role.VIEWER, Scopes())


def can_receive_secrets(principal: Principal, source: SourceSettings, path: Path) -> bool:
    """Whether a principal that requests credentials of the table at ``path`` (an object id's path) also receives the source's own
    secret storage options: the source allows it, and the principal is a writer or admin of the table."""
    return source.vend == "static" and principal.is_allowed(Role.WRITER, path)


def vended_access(principal: Principal, path: Path) -> Access | None:
    """Return the access of temporary credentials for the table at ``path``: to write for a writer or admin of the table, to read for
    the other roles. None if the scopes do not cover the table."""
    if not principal.is_allowed(Role.VIEWER, path):
        return None
    return Access.WRITE if principal.is_allowed(Role.WRITER, path) else Access.READ


def can_drop_data(principal: Principal, source: SourceSettings, path: Path) -> bool:
    """Whether a principal may delete the data of the table at ``path`` (an object id's path) with DropTable of the general spec."""
    return source.allow_drop and principal.is_allowed(Role.ADMIN, path)
