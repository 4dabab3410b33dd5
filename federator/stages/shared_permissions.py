"""What the stored facts of a location may come from, if several sources declare it: only what all of them permit.

The facts are shown in each of these sources. Principals who see one of them may not see what only another one permits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from federator.connector import ConnectorSettings, FederatorError, SourceSpec
from federator.lance.foreign_locations import is_inside, resolve_location
from federator.model import local_path
from federator.registry import get_connector
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
            settings: ConnectorSettings = get_connector(spec.impl).parse_settings(spec.properties)
        except FederatorError:
            return cls()
        root = settings.root_uri
        return cls(settings.allowed_bases, (root,) if local_path(root) is not None else ())

    @classmethod
    def of_source(cls, settings: Settings, name: str) -> Permissions:
        """Return what a source permits: no base and no mount if it is not configured any more."""
        return cls.of_spec(settings.sources[name].spec) if name in settings.sources else cls()

    def restrict(self, declaring: Iterable[Permissions]) -> Permissions:
        """Return those that all ``declaring`` sources have, too. Links below any of the mounts are not the operator's."""
        bases, mounts = self.allowed_bases, dict.fromkeys(self.mounts)
        for other in declaring:
            prefixes = list(map(resolve_location, other.allowed_bases))
            bases = tuple(base for base in bases if is_inside(resolve_location(base), prefixes))
            mounts |= dict.fromkeys(other.mounts)
        return Permissions(bases, tuple(mounts))


def restrict_to_declaring(index: Index, settings: Settings, own: Permissions, canonical: str) -> Permissions:
    """Return those permissions that all sources have that declare a table at a canonical location."""
    with index.read() as connection:
        declaring = verifications.list_declaring_sources(connection, [canonical]).get(canonical, ())
    return own.restrict(Permissions.of_source(settings, source) for source in sorted(declaring))
