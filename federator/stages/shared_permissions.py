"""What a table may refer to outside its location, if several sources declare the location and share its verification state.

The state and the facts are shown in each of these sources, and a principal may see only one of them. So a table is inspected with only
what all of them permit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from federator.connector import FederatorError, SourceSpec
from federator.lance.foreign_locations import is_inside, resolve_location
from federator.model import local_path
from federator.registry import parse_connector_settings
from federator.settings import Settings
from federator.store import Index, verifications


@dataclass(frozen=True, slots=True)
class Permissions:
    """What tables may refer to outside their locations: prefixes in ``allowed_bases``, and links at and above ``mounts``."""

    allowed_bases: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()

    @classmethod
    def of_spec(cls, spec: SourceSpec) -> Permissions:
        """Return what a source permits: no base and no mount if its settings are invalid."""
        try:
            settings = parse_connector_settings(spec)
        except FederatorError:
            return cls()
        root = settings.root_uri
        return cls(settings.allowed_bases, (root,) if local_path(root) is not None else ())

    @classmethod
    def of_source(cls, settings: Settings, name: str) -> Permissions:
        """Return what a source permits: no base and no mount if it is not configured any more."""
        return cls.of_spec(settings.sources[name].spec) if name in settings.sources else cls()

    def restrict(self, declaring: Iterable[Permissions]) -> Permissions:
        """Return the bases that all ``declaring`` sources permit, too, and the mounts of any of them: links below a mount are not the
        operator's.
        """
        bases, mounts = self.allowed_bases, dict.fromkeys(self.mounts)
        for other in declaring:
            prefixes = list(map(resolve_location, other.allowed_bases))
            bases = tuple(base for base in bases if is_inside(resolve_location(base), prefixes))
            mounts |= dict.fromkeys(other.mounts)
        return Permissions(bases, tuple(mounts))


def restrict_to_declaring(index: Index, settings: Settings, own: Permissions, access: str, canonical: str) -> Permissions:
    """Return ``own`` permissions as far as all sources have them that declare a table at a canonical location with an access."""
    with index.read() as connection:
        declaring = verifications.list_declaring_sources(connection, access, [canonical]).get(canonical, ())
    return own.restrict(Permissions.of_source(settings, source) for source in sorted(declaring))
