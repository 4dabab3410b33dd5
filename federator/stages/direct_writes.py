"""Open direct writes of dead processes: a run resolves those into its sources before it crawls them."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager, closing

from federator import logs
from federator.apply.direct_recovery import DirectRecovery
from federator.apply.publication import Publisher
from federator.apply.source_identity import opened_as_known
from federator.apply.table_locks import TableLocks
from federator.connector import Catalog, StateError
from federator.model import Path
from federator.registry import open_catalog
from federator.stages.context import RunContext
from federator.store import deployment

_log = logs.get_logger(__name__)


def resolve_direct_writes(context: RunContext, sources: Collection[str]) -> None:
    """Resolve the open direct writes of dead processes into sources. A clone of the index leaves them to its original."""
    index = context.index
    with context.record_errors("direct writes"):
        try:
            deployment.require_original(index, context.settings.instance)
        except StateError as error:
            _log.debug("direct writes are not resolved", error=error.message)
            return

        def open_known(source: str, namespaces: Collection[Path]) -> AbstractContextManager[Catalog]:
            return opened_as_known(index, context.source_spec(source), namespaces)

        with closing(Publisher(index, context.settings, lambda source: open_catalog(context.source_spec(source)))) as publisher:
            locks = TableLocks(index, context.settings)
            recovery = DirectRecovery(index, context.run.actor, locks, open_known, publisher.publish)
            recovery.resolve(sources)
        recovery.delete_leases()
