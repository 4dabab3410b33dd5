"""A company's catalogs: 300 tables in Hive, Glue and a directory on S3, with every state and every kind of drift planted."""

from __future__ import annotations

import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from federator.demo.servers.process import Server
from federator.model import NamespaceRecord, TableRecord
from federator.registry import open_catalog
from federator.service import Federator
from federator.settings import Settings, load_settings
from federator.store import verifications
from federator.views import datasets, drift
from tests.fixtures.glue import STATIC, GlueAccount, account, client_of, principals
from tests.fixtures.index_reads import list_scans

#: valid tables of Hive, of Glue on S3, and of the directory on S3
LOCAL, REMOTE, LISTED = 235, 40, 30
COLUMNS = [{"Name": "id", "Type": "bigint"}]


@dataclass
class Company:
    """The servers with what lies in them: a local lake, a bucket, and the catalogs that declare it."""

    directory: Path
    bucket: str
    s3: Any
    glue: Any
    settings: Settings

    @property
    def lake(self) -> Path:
        return self.directory / "lake"

    def s3_table(self, key: str, *, without: str = "") -> str:
        """A copy of the one small table, without the files below ``without``."""
        for name, body in self.small.items():
            if not (without and name.startswith(without)):
                self.s3.put_object(Bucket=self.bucket, Key=f"{key}/{name}", Body=body)
        return f"s3://{self.bucket}/{key}"

    @cached_property
    def small(self) -> dict[str, bytes]:
        """The files of the one small table, by their path in it."""
        root = self.directory / "small.lance"
        return {file.relative_to(root).as_posix(): file.read_bytes() for file in sorted(root.rglob("*")) if file.is_file()}

    def local_table(self, name: str) -> str:
        shutil.copytree(self.directory / "small.lance", self.lake / name)
        return f"file://{self.lake / name}"

    def in_glue(self, client: Any, name: str, location: str, **columns: Any) -> None:
        client.create_table(
            DatabaseName="sales",
            TableInput={
                "Name": name, "TableType": "EXTERNAL_TABLE", "Parameters": {"table_type": "LANCE"},
                "StorageDescriptor": {"Location": location, **columns},
            },
        )  # fmt: skip


@pytest.fixture
def company(
    hive3_throwaway: Server, glue_throwaway: Server, glue_url: str, glue_account: GlueAccount, tmp_path: Path
) -> Company:
    """Hive 3.1.3, three accounts of Glue, S3; in a second S3 server our principal may not read; a third does not answer."""
    s3, bucket = client_of(glue_url, "s3"), f"lake-{secrets.token_hex(4)}"
    s3.create_bucket(Bucket=bucket)
    client_of(glue_throwaway.uri, "s3").create_bucket(Bucket="locked")
    (limited,) = principals(glue_throwaway.uri, "glue:GetTables")
    (tmp_path / "lake").mkdir()
    lance.write_dataset(pa.table({"id": [1, 2, 3]}), str(tmp_path / "small.lance"))

    def secret(text: str) -> str:
        file = tmp_path / secrets.token_hex(4)
        file.write_text(text, encoding="utf-8")
        return f"file:{file}"

    def glue(who: GlueAccount, storage: dict[str, str]) -> str:
        keys = {f"glue.{key}": value for key, value in who.properties.items()} | {
            f"storage.aws_{k}": v for k, v in storage.items()
        }
        hidden = ("access_key_id", "secret_access_key", "session_token")
        return "".join(
            f'{key} = "{secret(value) if key.endswith(hidden) else value}"\n'
            for key, value in {"impl": "glue", **keys, "storage.allow_http": "true"}.items()
        )

    credentials = {name.removeprefix("aws_"): value for name, value in STATIC.items()}
    open_s3 = {"endpoint": glue_url, "region": "us-east-1", **credentials}
    guest = {"endpoint": glue_throwaway.uri, **{k: limited[k] for k in ("region", "access_key_id", "secret_access_key")}}
    partner, away = account(glue_url), account(glue_url)
    storage = "".join(f'storage.aws_{key} = "{secret(value) if "key" in key else value}"\n' for key, value in open_s3.items())
    (tmp_path / "federator.toml").write_text(
        f'[instance]\nid = "company"\n'
        f'[sources.hive]\nimpl = "hive3"\nhive3.uri = "{hive3_throwaway.uri}"\nhive3.root = "file:{tmp_path}/lake"\n'
        f"[sources.aws]\n{glue(glue_account, open_s3)}"
        f"[sources.partner]\n{glue(partner, guest)}"
        f'[sources.away]\n{glue(away, open_s3 | {"endpoint": "http://127.0.0.1:9"})}storage.client_max_retries = "0"\n'
        f'[sources.listed]\nimpl = "dir"\ndir.root = "s3://{bucket}/listed"\n{storage}storage.allow_http = "true"\n'
        f'[mirrors.pairs]\nfrom = "hive"\nto = "aws"\nnamespace = "{{database}}"\ninclude = ["hive$pairs$*"]\n'
        f'[roots.disk]\nlocation = "{tmp_path}/lake"\nexclude = ["ignored"]\n'
        f'[roots.bucket]\nlocation = "s3a://{bucket}/"\nsource = "aws"\n'
        f'[roots.locked]\nlocation = "s3://locked/"\nsource = "partner"\n',
        encoding="utf-8",
    )
    for who in (glue_account, partner, away):
        who.client().create_database(DatabaseInput={"Name": "sales"})
    made = Company(tmp_path, bucket, s3, glue_account.client(), load_settings(tmp_path / "federator.toml"))
    made.in_glue(partner.client(), "secret", "s3://locked/secret.lance")
    made.in_glue(away.client(), "far", "s3://far/far.lance")
    return made


def _in_hive(company: Company, declared: dict[tuple[str, str], str]) -> None:
    with open_catalog(company.settings.source("hive").spec) as hive:
        for database in ("sales", "pairs"):
            hive.create_namespace(NamespaceRecord("hive", ("hive", database)))

    def declare(declarations: list[tuple[tuple[str, str], str]]) -> None:
        with open_catalog(company.settings.source("hive").spec) as hive:
            for path, location in declarations:
                hive.declare_table(TableRecord("hive", ("hive", *path), location, {"team": "eu"}))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(declare, (list(declared.items())[part::4] for part in range(4))))


def _plant(company: Company) -> dict[str, str]:
    """Tables, and whatever else a location can have; returns the state of each declared place."""
    states: dict[str, str] = {}

    def planted(location: str, state: str) -> str:
        states[location] = state
        return location

    hive = {("sales", f"t{n}"): planted(company.local_table(f"t{n}.lance"), "valid") for n in range(LOCAL)}
    pairs = ("settled", "moved", "said", "left")
    hive |= {("pairs", name): planted(company.local_table(f"{name}.lance"), "valid") for name in pairs}
    for name, state in (("lost", "missing"), ("hollow", "empty"), ("csv", "not_lance"), ("torn", "corrupt")):
        hive["sales", name] = planted(f"file://{company.lake}/{name}", state)
    hive["sales", "again"] = hive["sales", "t0"]
    _in_hive(company, hive)
    # The metastore makes no directories (ADR 11).
    assert not (company.lake / "lost").exists()
    for name in ("hollow", "csv"):
        (company.lake / name).mkdir()
    (company.lake / "csv" / "part-0.csv").write_text("id\n1\n", encoding="utf-8")
    shutil.copytree(company.directory / "small.lance" / "data", company.lake / "torn" / "data")
    with ThreadPoolExecutor(8) as pool:
        remote = list(pool.map(lambda n: company.s3_table(f"sales/g{n}.lance"), range(REMOTE)))
        listed = list(pool.map(lambda n: company.s3_table(f"listed/d{n}.lance"), range(LISTED)))
        in_glue = partial(company.in_glue, company.glue, Columns=COLUMNS)
        list(pool.map(in_glue, (f"g{number}" for number in range(REMOTE)), remote))
    states |= dict.fromkeys((*remote, *listed), "valid")
    for name, key, state in (
        ("reserved", "/.lance-reserved", "declared_only"),
        ("nothing", "", "missing"),
        ("other", "/x", "not_lance"),
    ):
        if key:
            company.s3.put_object(Bucket=company.bucket, Key=f"sales/{name}{key}", Body=b"x")
        company.in_glue(company.glue, name, planted(f"s3://{company.bucket}/sales/{name}", state))
    company.in_glue(company.glue, "headless", planted(company.s3_table("sales/headless", without="_versions"), "corrupt"))
    company.in_glue(
        company.glue,
        "columns",
        planted(company.s3_table("sales/columns"), "valid"),
        Columns=[*COLUMNS, {"Name": "old", "Type": "int"}],
    )
    company.in_glue(
        company.glue, "types", planted(company.s3_table("sales/types"), "valid"), Columns=[{"Name": "id", "Type": "string"}]
    )
    for name in ("Twice", "twice"):
        planted(company.s3_table(f"listed/{name}.lance"), "valid")
    return states | {"s3://locked/secret.lance": "denied", "s3://far/far.lance": "unreachable"}  # fmt: skip


def _drift_apart(company: Company) -> None:
    """What people do to tables behind the mirror's back, and tables that nobody declares."""
    for name, change in (("moved", {"location": f"file://{company.lake}/t1.lance.copy"}), ("said", {"team": "us"})):
        table = company.glue.get_table(DatabaseName="pairs", Name=name)["Table"]
        table = {key: table[key] for key in ("Name", "TableType", "Parameters", "StorageDescriptor")}
        table["StorageDescriptor"]["Location"] = change.get("location", table["StorageDescriptor"]["Location"])
        table["Parameters"]["team"] = change.get("team", "eu")
        company.glue.update_table(DatabaseName="pairs", TableInput=table)
    company.local_table("t1.lance.copy")
    with open_catalog(company.settings.source("hive").spec) as hive:
        hive.deregister_table(hive.describe_table(("hive", "pairs", "left")))
    company.s3_table("forgotten/deep/down/orders.lance")
    company.local_table("nobody.lance")
    company.local_table("ignored/by/configuration.lance")
    # Lance keeps branches of a table inside it: they are no tables of their own.
    shutil.copytree(company.directory / "small.lance", company.lake / "t2.lance" / "tree" / "branch")


@pytest.mark.timeout(900)
def test_every_state_and_every_drift_is_found_and_nothing_else(spark: None, company: Company) -> None:
    states = _plant(company)
    federator = Federator.open(company.settings)
    first = federator.sync()
    assert (first.state, first.errors, first.change_count) == ("ok", {}, 5)
    _drift_apart(company)
    second = federator.crawl(["hive", "aws"], roots=["disk", "bucket", "locked"])
    # The locked bucket cannot be listed: that is said, and is no empty bucket.
    assert {name: (root.state, root.tables) for name, root in second.roots.items()} == {
        "disk": ("complete", LOCAL + 6), "bucket": ("complete", REMOTE + LISTED + 5), "locked": ("failed", 0),
    }  # fmt: skip
    assert second.state == "partial"
    (gap,) = next(gaps for scanned, gaps in list_scans(federator.index) if scanned.root == "locked")
    assert (gap.location, gap.code) == ("s3://locked", "denied")

    page = datasets.list_datasets(federator.index, limit=1000)
    states[f"file://{company.lake}/t1.lance.copy"] = "valid"
    assert {view.location: view.state for view in page.datasets} == states
    assert sum(state == "valid" for state in states.values()) >= 300
    # tests/unit/api/lance/test_foreign_facts.py has tables that refer to others.
    assert set(verifications.VERIFICATION_STATES) - {"unverified", "refers_outside"} == set(states.values())

    bucket, lake = f"s3://{company.bucket}", f"file://{company.lake}"
    aws = _prefix(first)
    assert {seen.key for seen in drift.list_drift(federator.index, limit=1000)} == {
        ("location_differs", f"{aws}$pairs$moved", "hive$hive$pairs$moved"),
        ("properties_differ", f"{aws}$pairs$said", "hive$hive$pairs$said"),
        ("dangling_mirror", f"{aws}$pairs$left", "hive$hive$pairs$left"),
        ("duplicate", "hive$hive$sales$t0", "hive$hive$sales$again"),
        ("missing", "hive$hive$sales$lost", f"{lake}/lost"), ("missing", f"{aws}$sales$nothing", f"{bucket}/sales/nothing"),
        ("name_clash", "listed$Twice", "listed$twice"),
        ("schema_differs", f"{aws}$sales$columns", f"{bucket}/sales/columns"),
        ("schema_differs", f"{aws}$sales$types", f"{bucket}/sales/types"),
        ("orphan", f"{bucket}/forgotten/deep/down/orders.lance", "bucket"), ("orphan", f"{lake}/nobody.lance", "disk"),
    }  # fmt: skip
    federator.index.close()


def _prefix(result: Any) -> str:
    """Glue's catalog level, as the mirror's own changes spell it."""
    (change,) = (c for plan in result.plans for c in plan.changes if c.action.value == "create_namespace")
    return "$".join(("aws", *change.target_path.split("$")[:-1]))
