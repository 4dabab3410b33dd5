"""The environment of the demo: real servers, real Lance tables, and their configuration."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from federator.connector import Catalog
from federator.demo.cloud import DENIED_LOCATION, PARTNER_ROLE, UNREACHABLE_ENDPOINT, create_cloud
from federator.demo.servers.glue import start_glue
from federator.demo.servers.hive import hive3_available, start_hive2, start_hive3
from federator.demo.servers.process import Server, get_server
from federator.demo.tables import write_table
from federator.model import NamespaceRecord, TableRecord
from federator.registry import open_catalog
from federator.runtime.private_files import write_private_text
from federator.settings import Settings, load_settings

_CONFIG = """\
[instance]
id = "demo"

[sources.lake_hive]                 # a Hive 2.3 metastore
impl = "hive2"
hive2.uri = "{hive2}"
hive2.root = "{base}/lake"

[sources.aws]                       # AWS Glue, served by moto
impl = "glue"
glue.endpoint = "{glue}"
glue.region = "us-east-1"
glue.access_key_id = "file:{base}/aws.id"       # an IAM user who may use Glue, but no bucket
glue.secret_access_key = "file:{base}/aws.key"
glue.storage.endpoint = "{glue}"
glue.storage.region = "us-east-1"
glue.storage.access_key_id = "file:{base}/aws.id"
glue.storage.secret_access_key = "file:{base}/aws.key"
glue.storage.allow_http = "true"

[sources.partner]                   # the Glue of another account, with unreachable storage
impl = "glue"
glue.endpoint = "{glue}"
glue.sts_endpoint = "{glue}"
glue.region = "us-east-1"
glue.assume_role_arn = "{role}"
glue.access_key_id = "file:{base}/aws.id"
glue.secret_access_key = "file:{base}/aws.key"
glue.storage.endpoint = "{nowhere}"
glue.storage.region = "us-east-1"
glue.storage.access_key_id = "file:{base}/aws.id"
glue.storage.secret_access_key = "file:{base}/aws.key"
glue.storage.allow_http = "true"
glue.storage.client_max_retries = "0"

[sources.scratch]                   # a directory of Lance tables
impl = "dir"
dir.root = "{base}/scratch"

[roots.lake]                        # storage that is scanned for tables that no catalog declares
location = "{base}/lake"

[mirrors.hive-to-glue]
from = "lake_hive"
to = "aws"
exclude = ["sales$tmp_*"]
min_miss_interval = "2s"            # the default, 10m, is too long for a demo
"""

_CONFIG_HIVE3 = """
[sources.new_hive]                  # a Hive 3.1.3 metastore
impl = "hive3"
hive3.uri = "{hive3}"
hive3.root = "{base}/new"

[mirrors.hive2-to-hive3]
from = "lake_hive"
to = "new_hive"
namespace = "hive${{database}}"
include = ["sales$*"]
min_miss_interval = "2s"
"""


@dataclass(frozen=True)
class World:
    """The servers and files below one directory."""

    directory: Path
    settings: Settings
    hive3: bool

    def stop(self) -> None:
        stop_servers(self.directory)


def start_world(directory: Path) -> World:
    """Start the servers concurrently, and write the configuration and the tables. On failure, stop the servers."""
    directory.mkdir(parents=True, exist_ok=True)
    with_hive3 = hive3_available()
    try:
        uris = _servers(directory, with_hive3)
        config = _CONFIG + (_CONFIG_HIVE3 if with_hive3 else "")
        user = create_cloud(uris["glue"])
        write_private_text(directory / "aws.id", user.access_key_id)
        write_private_text(directory / "aws.key", user.secret_access_key)
        text = config.format(base=directory, role=PARTNER_ROLE, nowhere=UNREACHABLE_ENDPOINT, **uris)
        write_private_text(directory / "federator.toml", text)
        settings = load_settings(directory / "federator.toml")
        _tables(directory, settings)
    except BaseException:
        stop_servers(directory)
        raise
    return World(directory, settings, with_hive3)


def stop_servers(directory: Path) -> list[Server]:
    """Stop all servers of a kept demo. Return them."""
    announcements = sorted((directory / "servers").glob("*/server.json"))
    servers = [get_server(path.parent) for path in announcements]
    for server in servers:
        server.stop()
    return servers


def _servers(directory: Path, with_hive3: bool) -> dict[str, str]:
    starts = {"hive2": start_hive2, "glue": start_glue, **({"hive3": start_hive3} if with_hive3 else {})}
    with ThreadPoolExecutor() as pool:
        pending = {name: pool.submit(start, directory / "servers" / name) for name, start in starts.items()}
        return {name: future.result().uri for name, future in pending.items()}


def _tables(directory: Path, settings: Settings) -> None:
    lake = directory / "lake"
    with open_catalog(settings.source("lake_hive").spec) as hive:
        for database in ("sales", "ml"):
            hive.create_namespace(NamespaceRecord("lake_hive", (database,)))
        for number, name in enumerate(("orders", "customers", "returns", "archive")):
            write_table(lake / "sales" / f"{name}.lance", rows=100 * (number + 1))
            _declare(hive, ("sales", name), lake / "sales" / f"{name}.lance", owner_team="sales")
        # The same location under a second name.
        _declare(hive, ("sales", "orders_2024"), lake / "sales" / "orders.lance")
        # Declared as Lance, but the location has other files.
        legacy = lake / "sales" / "legacy"
        legacy.mkdir(parents=True)
        (legacy / "part-0.csv").write_text("id,amount\n1,2\n", encoding="utf-8")
        _declare(hive, ("sales", "legacy"), legacy)
        write_table(lake / "ml" / "embeddings.lance", rows=256)
        # The declaration has a column that the table does not have.
        columns = '[{"name":"id","type":"bigint"},{"name":"amount","type":"double"},{"name":"label","type":"string"}]'
        hive.declare_table(
            TableRecord("lake_hive", ("ml", "embeddings"), str(lake / "ml" / "embeddings.lance"), schema=columns)
        )
        # An empty directory.
        (lake / "ml" / "planned.lance").mkdir()
        _declare(hive, ("ml", "planned"), lake / "ml" / "planned.lance")
        write_table(lake / "ml" / "torn.lance", rows=10)
        _declare(hive, ("ml", "torn"), lake / "ml" / "torn.lance")
    shutil.rmtree(lake / "ml" / "torn.lance" / "_versions")
    # An orphan: written, but not declared.
    write_table(lake / "ml" / "leftover.lance", rows=20)
    # The data of a declared table is removed.
    shutil.rmtree(lake / "sales" / "archive.lance")
    (directory / "scratch").mkdir()
    for name in ("notebook", "Notebook"):
        write_table(directory / "scratch" / f"{name}.lance", rows=10)
    with open_catalog(settings.source("scratch").spec) as scratch:
        # Declared, but not written.
        scratch.declare_table(TableRecord("scratch", ("draft",)))
    with open_catalog(settings.source("aws").spec) as glue:
        # A table that exists, but that the federator's user cannot open.
        path = glue.canonical_path(("finance", "salaries"))
        glue.create_namespace(NamespaceRecord("aws", path[:-1]))
        glue.declare_table(TableRecord("aws", path, DENIED_LOCATION))


def _declare(catalog: Catalog, path: tuple[str, ...], location: Path, **properties: str) -> None:
    catalog.declare_table(TableRecord(catalog.source, path, str(location), properties))
