"""The object store of each source, and its access to it: what decides whether two sources see the same at one location."""

from __future__ import annotations

from collections.abc import Mapping

from federator.connector import FederatorError, SourceSpec
from federator.lance.opening import digest_access, name_store
from federator.registry import parse_connector_settings
from federator.settings import Settings
from federator.store import Index, stores
from federator.store.stores import SourceStore


def find_access(spec: SourceSpec, storage: Mapping[str, str] | None = None) -> str:
    """Return a source's access to its object store (``SourceStore.access``). Empty if its settings are invalid.

    ``storage`` are the options with which a table is opened, if the table may name another endpoint than its source.
    """
    store = _find_store(spec, storage)
    return store.access if store is not None else ""


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
