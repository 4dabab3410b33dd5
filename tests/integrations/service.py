"""A real service for other projects' schedulers and catalogs: a Hive metastore, moto's Glue, a mirror, and ``federator serve``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from federator.connector import Catalog
from federator.demo.lab import start
from federator.demo.tables import write_table
from federator.demo.world import stop_servers
from federator.model import NamespaceRecord, TableRecord
from federator.registry import open_catalog
from federator.settings import load_settings
from tests.unit.api.service_process import Process

TOKEN = "t0ken-of-the-test"
TABLES = ("customers", "orders", "returns")
_CONFIG = """\
[instance]
id = "integrations"

[serve]
port = 0
token = "${FEDERATOR_TOKEN}"

[sources.hive]
impl = "hive2"
hive2.uri = "${HIVE}"

[sources.aws]
impl = "glue"
glue.endpoint = "${GLUE}"
glue.region = "us-east-1"

[mirrors.to-glue]
from = "hive"
to = "aws"
"""


@contextmanager
def running_service(directory: Path) -> Iterator[str]:
    """Yield the URL of a service with three tables in Hive and a mirror that has not run yet."""
    for line in start(directory):
        name, _, value = line.removeprefix("export ").partition("=")
        os.environ[name] = value
    os.environ |= {"FEDERATOR_TOKEN": TOKEN, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    (directory / "federator.toml").write_text(_CONFIG, encoding="utf-8")
    try:
        with open_catalog(load_settings(directory / "federator.toml").source("hive").spec) as hive:
            _declare_tables(hive, directory / "lake")
        service = Process(directory, "all")
        try:
            yield service.url()
        finally:
            service.end()
    finally:
        stop_servers(directory)


def _declare_tables(hive: Catalog, lake: Path) -> None:
    hive.create_namespace(NamespaceRecord(hive.source, ("sales",)))
    for name in TABLES:
        write_table(lake / f"{name}.lance", rows=10)
        columns = '[{"name":"id","type":"bigint"},{"name":"label","type":"string"}]' if name == "orders" else None
        hive.declare_table(TableRecord(hive.source, ("sales", name), str(lake / f"{name}.lance"), schema=columns))
