"""What several sources share that declare a location: the store that it is in, and the facts about it, if they open it with equal
options. The facts may come only from what all of them permit.

The facts are shown in each of these sources. Principals who see one of them may not see what only another one permits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from federator.connector import FederatorError, SourceSpec
from federator.lance.foreign_locations import is_inside, resolve_location
from federator.lance.opening import digest_access, name_store
from federator.model import local_path
from federator.registry import parse_connector_settings
from federator.settings import Settings
from federator.store import Index, stores, verifications
from federator.store.stores import DEFAULT_STORE, SourceStore


def find_store(spec: SourceSpec, storage: Mapping[str, str] | None = None) -> SourceStore:
    """Return a source's object store and its access to it. Both are empty if its settings are invalid.

    ``storage`` are the options with which a table is opened, if the table may name another endpoint than its source.
    """
    return _find_store(spec, storage) or SourceStore(DEFAULT_STORE, "")


def _find_store(spec: SourceSpec, storage: Mapping[str, str] | None = None) -> SourceStore | None:
    try:
        settings = parse_connector_settings(spec)
    except FederatorError:
        return None
    store = name_store(settings.storage if storage is None else storage)
    references = {
        key.removeprefix(f"{spec.impl}.").removeprefix("storage."): str(text) for key, text in spec.properties.items()
    }
    return SourceStore(store, digest_access(settings, references, store))


def record_stores(index: Index, settings: Settings) -> None:
    """Store all sources' stores and their accesses, so that the facts of one are shown only in sources that could read the same.

    A source whose settings are invalid at the moment keeps both: a secret that cannot be read must not show it the facts of the
    default store.
    """
    store_by_source = {name: _find_store(source.spec) for name, source in settings.sources.items()}
    named = {name: store for name, store in store_by_source.items() if store is not None}
    with index.read() as connection:
        known = stores.read_source_stores(connection)
    if any(known.get(name) != store for name, store in named.items()):
        with index.write() as connection:
            stores.save_stores(connection, named)


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
        """Return those that all ``declaring`` sources have, too. Links below any of the mounts are not the operator's."""
        bases, mounts = self.allowed_bases, dict.fromkeys(self.mounts)
        for other in declaring:
            prefixes = list(map(resolve_location, other.allowed_bases))
            bases = tuple(base for base in bases if is_inside(resolve_location(base), prefixes))
            mounts |= dict.fromkeys(other.mounts)
        return Permissions(bases, tuple(mounts))


def restrict_to_declaring(index: Index, settings: Settings, own: Permissions, access: str, canonical: str) -> Permissions:
    """Return those permissions that all sources have that declare a table at a canonical location, and show its facts."""
    with index.read() as connection:
        declaring = verifications.list_declaring_sources(connection, access, [canonical]).get(canonical, ())
    return own.restrict(Permissions.of_source(settings, source) for source in sorted(declaring))
