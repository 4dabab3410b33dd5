"""Tables of the index as SQLAlchemy Core definitions.

``migrations/`` creates the tables; a test compares them with these definitions. Times are seconds since the epoch, as REAL. Paths are
path keys (``federator.model.path_key``). JSON is stored as canonical text.

Import the tables from this package: ``metadata`` is complete only when all its modules are loaded.
"""

from __future__ import annotations

from federator.store.tables.base import metadata
from federator.store.tables.crawls import (
    absence,
    coverage,
    draft_part,
    pending_publication,
    record,
    revision,
    source,
    source_identity,
)
from federator.store.tables.datasets import (
    alias,
    dataset,
    dataset_past,
    drift,
    drift_seen,
    root,
    root_gap,
    root_table,
    source_store,
)
from federator.store.tables.mirrors import approval, journal, ledger, plan
from federator.store.tables.service import (
    audit_event,
    audit_head,
    audit_outbox,
    catalog_call,
    catalog_error,
    deployment,
    lease,
    notice,
    notification,
    report,
    request,
    run,
    run_source,
    run_stage,
    schedule_state,
    search_entry,
    search_vocabulary,
    session,
    snooze,
    token,
)

__all__ = [
    "absence",
    "alias",
    "approval",
    "audit_event",
    "audit_head",
    "audit_outbox",
    "catalog_call",
    "catalog_error",
    "coverage",
    "dataset",
    "dataset_past",
    "deployment",
    "draft_part",
    "drift",
    "drift_seen",
    "journal",
    "lease",
    "ledger",
    "metadata",
    "notice",
    "notification",
    "pending_publication",
    "plan",
    "record",
    "report",
    "request",
    "revision",
    "root",
    "root_gap",
    "root_table",
    "run",
    "run_source",
    "run_stage",
    "schedule_state",
    "search_entry",
    "search_vocabulary",
    "session",
    "snooze",
    "source",
    "source_identity",
    "source_store",
    "token",
]
