"""Who asks, and what that one may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from federator.connector import PermissionDenied
from federator.model import Path, path_key
from federator.model.scopes import EVERYTHING, Scopes


class Role(IntEnum):
    """Each role may do what those before it may: look; run, cancel, decide; write to catalogs and tables; everything."""

    VIEWER = 1
    OPERATOR = 2
    WRITER = 3
    ADMIN = 4


@dataclass(frozen=True, slots=True)
class Caller:
    """The one who asks: ``name`` stands in runs, journal and audit."""

    name: str
    role: Role
    scopes: Scopes

    def require(self, role: Role, path: Path | None = None) -> None:
        """Raises PermissionDenied where the caller's role, or its scopes for what is at ``path``, do not reach."""
        if self.role < role:
            raise PermissionDenied(f"{self.name} is {self.role.name.lower()}; this needs {role.name.lower()}")
        if path is not None and not self.scopes.covers(path):
            raise PermissionDenied(f"{self.name} may not change {path_key(path)}")


#: where no token is asked for: this machine's own user
LOCAL = Caller("api", Role.ADMIN, EVERYTHING)
