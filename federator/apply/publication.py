"""Publication of direct writes: the written objects are observed and become the source's next revision.

While a crawl holds the source's lease, which may take minutes, a write does not wait: ``store.pending_publications`` has the object at
once, for every process. It is observed again and published as soon as the lease is free. If this process ends before that, the next
writer of the source publishes it, or the next crawl finds it.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass

from federator import logs
from federator.apply.source_identity import check_identity
from federator.connector import Catalog, FederatorError
from federator.model import Kind, Path, parent_path
from federator.planning.publication import ObservedObject
from federator.runtime.text import first_line
from federator.settings import Settings
from federator.store import DatabaseError, Index, pending_publications, revisions
from federator.store.leases import LeaseHeld, acquire_lease
from federator.store.observations import publish_observations
from federator.views import listing

#: how long a write waits for its source's lease, in seconds; then it is published later
LEASE_WAIT_SECONDS = 1.0
_RETRY_SECONDS = 1.0
_MAX_RETRY_SECONDS = 60.0
_log = logs.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AffectedObject:
    """An object that a write may have changed. ``path`` is from the source's root."""

    path: Path
    is_table: bool = True


class Publisher:
    """Publishes direct writes of one index. Safe for threads. ``borrow_catalog`` opens a source's catalog."""

    def __init__(
        self, index: Index, settings: Settings, borrow_catalog: Callable[[str], AbstractContextManager[Catalog]]
    ) -> None:
        self._index = index
        self._settings = settings
        self._borrow_catalog = borrow_catalog
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._threads: dict[str, threading.Thread] = {}
        self._closed = threading.Event()

    def publish(self, source: str, op_id: str, affected: Sequence[AffectedObject]) -> bool:
        """Observe the objects of a write that was made, and publish them. Return whether the index has them now."""
        try:
            with self._locks[source]:
                if not pending_publications.list_pending(self._index, source):
                    with suppress(LeaseHeld):
                        self._publish_now(source, op_id, affected, wait=LEASE_WAIT_SECONDS)
                        return True
                pending_publications.add_pending(self._index, source, self._observe(source, affected))
                if source not in self._threads:
                    thread = self._threads[source] = threading.Thread(
                        target=self._publish_pending, args=(source, op_id), name=f"publish {source}", daemon=True
                    )
                    thread.start()
        except (FederatorError, DatabaseError) as error:
            _log.warning("direct write is not yet published", source=source, error=first_line(error))
        return False

    def close(self) -> None:
        """Stop pending publications, and wait for those that are being published."""
        self._closed.set()
        for thread in list(self._threads.values()):
            thread.join()

    def _publish_now(self, source: str, op_id: str, affected: Sequence[AffectedObject], *, wait: float) -> None:
        settings = self._settings.source(source)
        revisions.register_source(self._index, source, settings.impl, settings.digest)
        with acquire_lease(self._index, f"source:{source}", wait=wait) as lease:
            # Observed while the lease is held, so that no newer evidence is replaced.
            began_at = time.time()
            observations = self._observe(source, affected)
            publish_observations(
                self._index, lease, source, op_id, [*observations, *self._dropped_descendants(source, observations)]
            )
        # Both spellings of each path: the client's, and the canonical one of the catalog.
        keys = [*((item.is_table, item.path) for item in affected), *((item.is_table, item.path) for item in observations)]
        pending_publications.remove_published(self._index, source, keys, began_at)

    def _observe(self, source: str, affected: Sequence[AffectedObject]) -> list[ObservedObject]:
        """Observe objects directly, and return them as the index stores them. Raise CatalogError, and IdentityChanged if another
        catalog responds than the index knows.

        A foreign object is omitted: the crawl decides about it.
        """
        observed: list[ObservedObject] = []
        with self._borrow_catalog(source) as catalog:
            check_identity(self._index, catalog, {parent_path(target.path) for target in affected})
            for target in affected:
                observed_at = time.time()
                path = catalog.canonical_path(target.path)
                if not target.is_table:
                    observed.append(ObservedObject(path, catalog.find_namespace(path), observed_at, is_table=False))
                    continue
                observation = catalog.observe(path)
                if observation.foreign is None and (observation.record is None or observation.record.kind is Kind.TABLE):
                    observed.append(ObservedObject(path, observation.record, observed_at, is_table=True))
        return observed

    def _dropped_descendants(self, source: str, observations: Sequence[ObservedObject]) -> list[ObservedObject]:
        """Return the absent objects below namespaces that were observed absent."""
        dropped = [namespace for namespace in observations if namespace.record is None and not namespace.is_table]
        with self._index.read() as connection:
            return [
                ObservedObject(path, None, namespace.at, is_table)
                for namespace in dropped
                for path, is_table in listing.list_descendants(connection, source, namespace.path)
            ]

    def _publish_pending(self, source: str, op_id: str) -> None:
        """Publish the pending writes as soon as the lease is free, after another observation."""
        pause_seconds = _RETRY_SECONDS
        while not self._closed.wait(pause_seconds):
            try:
                with self._locks[source]:
                    pending = pending_publications.list_pending(self._index, source)
                    affected = [AffectedObject(observation.path, observation.is_table) for observation in pending]
                    self._publish_now(source, op_id, affected, wait=0.0)
                    del self._threads[source]
                    return
            except LeaseHeld:
                pause_seconds = _RETRY_SECONDS
            except (FederatorError, DatabaseError) as error:
                pause_seconds = min(2 * pause_seconds, _MAX_RETRY_SECONDS)
                _log.warning("direct writes are not yet published, retrying", source=source, error=first_line(error))
