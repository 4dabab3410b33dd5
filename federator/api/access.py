"""Who asks, and what that one may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from federator.connector import PermissionDenied
from federator.model import Path, path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.settings import SourceSettings


class Role(IntEnum):
    """Each role may do what those before it may: look; run, cancel, decide; write to catalogs and tables; everything."""

    VIEWER = 1
    OPERATOR = 2
    WRITER = 3
    ADMIN = 4

    @classmethod
    def of(cls, text: str) -> Role:
        """Raises ValueError that lists the roles."""
        try:
            return cls[text.upper()]
        except KeyError:
            raise ValueError(f"{text!r} is no role: {', '.join(ROLES)}") from None


#: the roles as they are written, the least first
ROLES = tuple(role.name.lower() for role in Role)


@dataclass(frozen=True, slots=True)
class Caller:
    """The one who asks: ``name`` stands in runs, journal and audit."""

    name: str
    role: Role
    scopes: Scopes

    def may(self, role: Role, path: Path | None = None) -> bool:
        """Whether the caller's role, and its scopes for what is at ``path``, reach."""
        return self.role >= role and (path is None or self.scopes.covers(path))

    def require(self, role: Role, path: Path | None = None) -> None:
        """Raises PermissionDenied where the caller's role, or its scopes for what is at ``path``, do not reach.

        Asked before anything is looked up: what the answer says depends on the caller alone, not on what is there.
        """
        if self.role < role:
            raise PermissionDenied(f"{self.name} is {self.role.name.lower()}; this needs {role.name.lower()}")
        if path is not None and not self.scopes.covers(path):
            raise PermissionDenied(f"{self.name} may not change {path_key(path) or 'the root'}")

    def require_everything(self, role: Role) -> None:
        """For what cannot be told in parts. Raises PermissionDenied unless the role reaches and the scope is everything."""
        self.require(role)
        if not self.scopes.everything:
            raise PermissionDenied(f"{self.name} sees a part of the tree; this tells of all of it")


#: where no token is asked for: this machine's own user
LOCAL = Caller("api", Role.ADMIN, EVERYTHING)


def may_have_secrets(caller: Caller, source: SourceSettings, path: Path) -> bool:
    """Whether a caller that asks for credentials of the table at ``path`` (from the tree's root) gets the secret storage options
    too: the source allows it, and the caller is writer or admin of that table."""
    return source.vend_credentials and caller.may(Role.WRITER, path)


def may_drop(caller: Caller, source: SourceSettings, path: Path) -> bool:
    """Whether a caller may delete the data of the table at ``path`` (from the tree's root) through the general spec's DropTable."""
    return source.allow_drop and caller.may(Role.ADMIN, path)
