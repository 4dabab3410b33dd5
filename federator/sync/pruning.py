"""Prune: what the policy does not keep of the past is removed, source by source, each under its lease."""

from __future__ import annotations

import time

from federator.connector import ConfigError
from federator.index import retention
from federator.index.leases import hold
from federator.index.moments import iso
from federator.settings import Settings
from federator.sync.result import counted
from federator.sync.work import LEASE_PATIENCE, Work


def need_policy(settings: Settings) -> None:
    """Raises ConfigError where nothing says what may go."""
    if not settings.history.limited:
        raise ConfigError(
            f"{settings.path}: [history] keeps everything", hint="keep_days = 400, or --keep-days for this time alone"
        )


def prune(work: Work, *, keep_days: float | None = None) -> None:
    """Removes what is older than the policy keeps, or than ``keep_days``. A source in use is left for the next time."""
    policy = work.settings.history
    keep_seconds = policy.keep_seconds if keep_days is None else keep_days * 86_400
    before = retention.cutoff(work.index, time.time(), keep_seconds=keep_seconds, keep_runs=policy.keep_runs)
    if before is None:
        return
    for source in retention.sources(work.index):
        with work.recording(source), work.step("prune", source) as done:
            with hold(work.index, f"source:{source}", wait=LEASE_PATIENCE) as lease:
                found = retention.prune(work.index, lease, source, before, work.run)
            work.result.pruned.append(found)
            since = f", kept from {iso(found.since)} on" if found.since is not None else ""
            done("ok", f"{counted(found.records + found.coverage, 'old row')} removed{since}")
    with work.recording("datasets"), work.step("prune", "datasets") as done:
        removed = retention.prune_looks(work.index, before, work.run)
        done("ok", f"{counted(removed, 'old look')} removed, kept from {iso(before)} on")
