"""``federator sync`` over 100 tables of Hive 2.3 into Glue: cold as a command, warm in the service's process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from federator.demo.servers import hive
from federator.demo.servers.glue import start_glue
from federator.model import NamespaceRecord, TableRecord
from federator.pipeline import session
from federator.registry import open_catalog
from federator.service import Federator
from federator.settings import load_settings
from tests.bench.measure import BOTH_JIT_TIERS, Row, limit, seconds

TABLES = 100
_CONFIG = """
[instance]
id = "bench"
[sources.hive]
impl = "hive2"
hive2.uri = "{hive}"
hive2.root = "file:{base}/lake"
[sources.aws]
impl = "glue"
glue.endpoint = "{glue}"
glue.region = "us-east-1"
glue.access_key_id = "file:{base}/key"
glue.secret_access_key = "file:{base}/key"
[mirrors.copy]
from = "hive"
to = "aws"
[verify]
enabled = {verify}
"""


def run(directory: Path) -> list[Row]:
    servers = [hive.start(hive.HIVE2, directory / "hive2", env=BOTH_JIT_TIERS), start_glue(directory / "glue")]
    try:
        (directory / "key").write_text("bench", encoding="utf-8")
        file = directory / "federator.toml"
        values = {"hive": servers[0].uri, "glue": servers[1].uri, "base": directory}
        file.write_text(_CONFIG.format(**values, verify="true"), encoding="utf-8")
        settings = load_settings(file)
        _tables(settings.source("hive").spec, directory)
        command = [str(Path(sys.executable).with_name("federator")), "--config", str(file), "sync"]
        cold = seconds(lambda: subprocess.run(command, check=True, capture_output=True))
        again = seconds(lambda: subprocess.run(command, check=True, capture_output=True))
        federator = Federator.open(settings)
        federator.sync()
        warm = sorted(seconds(federator.sync) for _ in range(5))[2]
        session.stop_session()
    finally:
        for server in servers:
            server.stop()
    return [
        limit(f"federator sync, {TABLES} tables, the first, cold", cold, 20),
        limit(f"federator sync, {TABLES} tables, nothing to do, cold", again, 12),
        limit(f"sync of {TABLES} tables, warm in the service", warm, 1.5),
    ]


def _tables(spec: object, directory: Path) -> None:
    import lance
    import pyarrow as pa

    with open_catalog(spec) as catalog:  # type: ignore[arg-type]
        catalog.create_namespace(NamespaceRecord("hive", ("sales",)))
        for number in range(TABLES):
            location = directory / "lake" / f"t{number}.lance"
            lance.write_dataset(pa.table({"id": [number]}), str(location))
            catalog.declare_table(TableRecord("hive", ("sales", f"t{number}"), f"file:{location}"))
