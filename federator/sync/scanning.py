"""Scan: the storage roots are looked through for tables that no catalog declares."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from federator.index import roots
from federator.index.leases import hold
from federator.index.roots import Gap, Scanned
from federator.model import canonical_location, local_path
from federator.sync.result import counted
from federator.sync.work import LEASE_PATIENCE, Work


def scan(work: Work, names: Sequence[str]) -> None:
    """Scans roots one after the other; one that fails does not stop the others, and what was known of it stays known."""
    from federator.pipeline.session import engine_errors

    for name in names:
        with work.recording(f"root {name}"), work.step("scan", name) as done, engine_errors(f"scan {name}"):
            scanned = _scan(work, name)
            work.result.roots[name] = scanned
            text = f"{counted(scanned.tables, 'table')} in {counted(scanned.directories, 'directory')}".replace(
                "directorys", "directories"
            )
            done(
                "ok" if scanned.state == "complete" else scanned.state,
                f"{text}; {scanned.message}" if scanned.message else text,
            )


def _scan(work: Work, name: str) -> Scanned:
    from federator.pipeline.scan import Walk
    from federator.pipeline.scan import scan as walked

    root = work.settings.root(name)
    # As Lance opens it: it knows s3://, and neither s3a:// nor https://.
    location = root.location if local_path(root.location) is not None else canonical_location(root.location)
    walk = Walk(work.settings.root_spec(name), location, root.depth, root.excluded, root.timeout, root.max_directories)
    with hold(work.index, f"root:{name}", wait=LEASE_PATIENCE) as lease:
        began_at = time.time()
        found = walked(work.spark(), walk)
        # A depth is as configured; everything else that was not listed should have been.
        short = [gap for gap in found.gaps if gap.code != "depth"]
        state = "failed" if not found.whole else "partial" if short else "complete"
        message = _told(short, canonical_location(root.location))
        scanned = Scanned(
            name, root.location, state, message, began_at, found.directories, len(found.tables), len(found.gaps)
        )  # fmt: skip
        with work.index.write() as connection:
            lease.check(connection)
            roots.save(connection, scanned, found.tables, found.gaps, work.settings.aliases)
    return scanned


def _told(short: Sequence[Gap], root: str) -> str | None:
    whole = next((gap for gap in short if gap.place == root), None)
    if whole is not None:
        return f"{whole.place}: {whole.message}"
    if not short:
        return None
    by_code = ", ".join(f"{count} {code}" for code, count in sorted(Counter(gap.code for gap in short).items()))
    return f"not listed: {by_code}, {short[0].place} for one"
