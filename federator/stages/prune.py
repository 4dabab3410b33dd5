"""Prune: remove the history that the policy does not keep, source by source, each under its lease."""

from __future__ import annotations

import time

from federator.connector import ConfigError
from federator.runtime.text import format_count, format_utc
from federator.settings import Settings
from federator.stages.context import LEASE_WAIT_SECONDS, RunContext
from federator.store import retention
from federator.store.leases import acquire_lease


def require_policy(settings: Settings) -> None:
    """Raise ConfigError if no setting limits the history."""
    if not settings.history.has_limit:
        raise ConfigError(f"{settings.path}: [history] keeps everything", hint="set keep_days = 400, or use --keep-days once")


def prune_history(context: RunContext, *, keep_days: float | None = None) -> None:
    """Remove history that is older than the policy or ``keep_days`` allows. A source in use is left for the next run."""
    policy = context.settings.history
    keep_seconds = policy.keep_seconds if keep_days is None else keep_days * 86_400
    before = retention.retention_cutoff(context.index, time.time(), keep_seconds=keep_seconds, keep_runs=policy.keep_runs)
    if before is None:
        return
    for source in retention.list_source_names(context.index):
        with context.record_errors(source), context.stage("prune", source) as finish:
            with acquire_lease(context.index, f"source:{source}", wait=LEASE_WAIT_SECONDS) as lease:
                pruned = retention.prune_source(context.index, lease, source, before, context.run)
            context.result.pruned.append(pruned)
            since = f", kept from {format_utc(pruned.since)} on" if pruned.since is not None else ""
            finish("ok", f"{format_count(pruned.records + pruned.coverage, 'old row')} removed{since}")
    with context.record_errors("datasets"), context.stage("prune", "datasets") as finish:
        removed = retention.prune_verification_history(context.index, before, context.run)
        unused = retention.prune_unused_verifications(context.index, before, context.run)
        finish(
            "ok",
            f"{format_count(removed, 'old verification state')} removed, kept from {format_utc(before)} on; "
            f"{format_count(unused, 'state')} of locations that no source declares removed",
        )
