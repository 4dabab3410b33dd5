"""Scan: list the storage roots to find tables that no catalog declares."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from federator.model import canonical_location, local_path
from federator.runtime.text import format_count
from federator.stages.context import LEASE_WAIT_SECONDS, RunContext
from federator.store import roots
from federator.store.leases import acquire_lease
from federator.store.roots import ScanGap, ScanResult


def scan_roots(context: RunContext, names: Sequence[str]) -> None:
    """Scan roots one after the other. A root that fails does not stop the others, and keeps its earlier results."""
    from federator.pipeline.spark_errors import translate_spark_errors

    for name in names:
        with (
            context.record_errors(f"root {name}"),
            context.stage("scan", name) as finish,
            translate_spark_errors(f"scan {name}"),
        ):
            scanned = _scan_root(context, name)
            context.result.roots[name] = scanned
            directories = format_count(scanned.directories, "directory", "directories")
            text = f"{format_count(scanned.tables, 'table')} in {directories}"
            finish(
                "ok" if scanned.state == "complete" else scanned.state,
                f"{text}; {scanned.message}" if scanned.message else text,
            )


def _scan_root(context: RunContext, name: str) -> ScanResult:
    from federator.pipeline.scan import ScanSpec
    from federator.pipeline.scan import scan_root as scan_with_spark

    root = context.settings.root(name)
    # In Lance's spelling: Lance opens s3://, but neither s3a:// nor https://.
    location = root.location if local_path(root.location) is not None else canonical_location(root.location)
    spec = ScanSpec(
        context.settings.root_spec(name), location, root.depth, root.excluded_locations, root.timeout, root.max_directories
    )
    with acquire_lease(context.index, f"root:{name}", wait=LEASE_WAIT_SECONDS) as lease:
        started_at = time.time()
        result = scan_with_spark(context.spark_session(), spec)
        # A gap because of the depth limit is configured; all other gaps are unexpected.
        unexpected_gaps = [gap for gap in result.gaps if gap.code != "depth"]
        state = "failed" if not result.root_listed else "partial" if unexpected_gaps else "complete"
        message = _gap_summary(unexpected_gaps, canonical_location(root.location))
        scanned = ScanResult(
            name,
            root.location,
            state,
            message,
            started_at,
            directories=result.directories,
            tables=len(result.tables),
            gaps=len(result.gaps),
        )
        with context.index.write() as connection:
            lease.require_held(connection)
            roots.save_scan(connection, scanned, result.tables, result.gaps, context.settings.location_aliases)
    return scanned


def _gap_summary(gaps: Sequence[ScanGap], root: str) -> str | None:
    root_gap = next((gap for gap in gaps if gap.location == root), None)
    if root_gap is not None:
        return f"{root_gap.location}: {root_gap.message}"
    if not gaps:
        return None
    by_code = ", ".join(f"{count} {code}" for code, count in sorted(Counter(gap.code for gap in gaps).items()))
    return f"not listed: {by_code}, for example {gaps[0].location}"
