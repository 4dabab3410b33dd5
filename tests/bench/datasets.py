"""One million locations that two catalogs declare: grouped into Datasets, looked through for drift, and once more unchanged."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from federator.model import TableRecord
from federator.planning.ownership import OwnershipMarker
from federator.planning.rule import MirrorRule
from federator.store import Index, drift_detection, migrations, open_index, revisions
from federator.store import tables as t
from federator.store.leases import acquire_lease
from federator.views import datasets, drift
from tests.bench.measure import Row, limit, memory, seconds

LOCATIONS = 1_000_000
_CHUNK = 20_000


def run(directory: Path) -> list[Row]:
    index = open_index("sqlite:///federator.db", base=directory)
    migrations.upgrade_schema(index)
    _fill(index, "lake", "")
    _fill(index, "copy", "m")
    _ledger(index)
    rules = {"m": MirrorRule(name="m", origin="lake", target="copy")}
    with memory() as watched:
        grouped = seconds(lambda: _group(index))
        first = seconds(lambda: drift_detection.refresh_drift(index, rules))
        again = seconds(lambda: drift_detection.refresh_drift(index, rules))
    assert drift.list_drift(index) == []
    peak = max(watched.peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
    index.close()
    return [
        limit(f"{LOCATIONS:,} locations of {2 * LOCATIONS:,} declarations grouped", grouped, 120),
        limit(f"{LOCATIONS:,} mirrored pairs compared, the first time", first, 300),
        limit("the same once more, nothing having changed", again, 10),
        limit("memory of the driver", peak, 4, "GiB"),
    ]


def _group(index: Index) -> None:
    """Every Dataset with its declarations, as an export reads them."""
    from federator.views.extracts import EXTRACTS

    (extract,) = (each for each in EXTRACTS if each.name == "datasets")
    with index.read_consistently() as connection:
        found = sum(batch.num_rows for batch in extract.batches(connection))
    assert found == LOCATIONS
    assert len(datasets.list_datasets(index, limit=200).datasets) == 200


def _records(source: str, mirror: str) -> Iterator[TableRecord]:
    for number in range(LOCATIONS):
        path = (f"db{number % 1000}", f"t{number}")
        marks = OwnershipMarker("bench", mirror, f"lake${'$'.join(path)}", "op").to_properties(path) if mirror else {}
        yield TableRecord(
            source, path, f"s3://lake/{path[0]}/{path[1]}.lance", {"team": "data", **marks}, native_id=str(number)
        )


def _fill(index: Index, source: str, mirror: str) -> None:
    revisions.register_source(index, source, "memory", "digest")
    with acquire_lease(index, f"source:{source}") as lease:
        draft = revisions.begin_draft(index, lease, source, "run", 1.0)
        rows: list[Any] = []
        for record in _records(source, mirror):
            rows.append(revisions.incoming_row(record))
            if len(rows) == _CHUNK:
                revisions.add_records(index, lease, draft, rows)
                rows = []
        revisions.add_records(index, lease, draft, rows)
        revisions.publish_draft(index, lease, draft, added=LOCATIONS, changed=0, removed=0, values={})


def _ledger(index: Index) -> None:
    nothing = dict.fromkeys(("native_id", "location", "origin_digest", "target_digest", "mapping_digest", "declared"))
    same = {"mirror": "m", "origin_source": "lake", "target_source": "copy", "is_table": 1, "op_id": "op", "run_id": "run"}
    for start in range(0, LOCATIONS, _CHUNK):
        paths = [f"db{number % 1000}$t{number}" for number in range(start, start + _CHUNK)]
        rows = [{**nothing, **same, "origin_path": path, "target_path": path, "updated_at": 1.0} for path in paths]
        with index.write() as connection:
            connection.execute(insert(t.ledger), rows)
