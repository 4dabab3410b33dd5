"""Verification of tables on the local disk against a bare loop: the same tables, opened with pylance in as many processes.

The loop does not look for links that lead out of a table, which takes about as long as opening a small one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from federator.connector import SourceSpec
from federator.pipeline import session
from federator.pipeline.staging_area import StagingArea
from federator.pipeline.verify import verify_locations
from federator.settings import parse_settings
from federator.store.verifications import DueLocation
from tests.bench.measure import Row, ratio, seconds

TABLES = 20_000
_PROCESSES = os.cpu_count() or 2
ROUNDS = 5
# What a person would write: open each table, and read off what verification stores of it.
_LOOP = """
import json, sys
import lance
for path in json.load(sys.stdin):
    dataset = lance.dataset(path)
    dataset.get_version(), dataset.count_rows(), dataset.describe_indices(), dataset.data_storage_version
    [(field.name, str(field.type), field.nullable) for field in dataset.schema]
"""


def run(directory: Path) -> list[Row]:
    import lance
    import pyarrow as pa

    lance.write_dataset(pa.table({"id": [1, 2, 3]}), str(directory / "one.lance"))
    paths = [str(directory / "tables" / f"t{number}.lance") for number in range(TABLES)]
    for path in paths:
        shutil.copytree(directory / "one.lance", path)
    rows = [DueLocation(f"file://{path}", path) for path in paths]
    settings = parse_settings({"sources": {"lake": {"impl": "dir", "root": str(directory)}}}, directory / "federator.toml")
    spark, spec = session.get_session(settings), SourceSpec("lake", "dir", {"root": str(directory)})

    staging = StagingArea(spark, str(directory / "staging"))

    def verify() -> None:
        states = [row["state"] for row in verify_locations(staging, spec, rows, timeout=60.0, seconds=3600.0)]
        assert states == ["valid"] * TABLES

    # Spark's own start is the crawl's, which comes before; and each side has read every file once before it is measured.
    session.warm_workers(spark)
    _loop(paths)
    verify()
    floors, mine = [], []
    for _ in range(ROUNDS):
        floors.append(seconds(lambda: _loop(paths)))
        mine.append(seconds(verify))
    session.stop_session()
    return [ratio(f"{TABLES:,} tables opened, against a bare loop in {_PROCESSES} processes", floors, mine, 2.2)]


def _loop(paths: list[str]) -> None:
    env = {**os.environ, "LANCE_LOG": "error"}
    children = [
        subprocess.Popen([sys.executable, "-c", _LOOP], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        for _ in range(_PROCESSES)
    ]
    for number, child in enumerate(children):
        assert child.stdin is not None
        child.stdin.write(json.dumps(paths[number::_PROCESSES]).encode())
        child.stdin.close()
    assert all(child.wait() == 0 for child in children)
