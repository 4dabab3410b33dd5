"""An app over a filled index, without Spark, asked over HTTP in process."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from federator.api.app import create_app
from federator.model import ROOT, Coverage, Kind, failed_evidence
from federator.settings import Settings, parse_settings
from federator.store import Index, coverage, open_index, records, revisions, verifications
from federator.store.leases import acquire_lease
from federator.testing import MemoryStore
from tests.fixtures.index import new_index
from tests.fixtures.index_content import fill, namespace, table
from tests.unit.api.service_process import CONFIG, Process
from tests.unit.api.service_process import ODD as NAME

ODD = ("a b", "ä", "😀", "per%cent", "dol$lar", "sla/sh", "..", "?q#f", "%24", "%2F", "a+b", "ends/", 'quo"te')


@dataclass
class Api:
    """Asks an app. Each call is a client of its own, as from another process."""

    app: FastAPI
    headers: dict[str, str] = field(default_factory=dict)
    base: str = "http://127.0.0.1:8042"

    def ask(self, method: str, url: str, **options: Any) -> httpx.Response:
        async def asking() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=self.base, headers=self.headers) as client:
                return await client.request(method, url, **options)

        return asyncio.run(asking())

    def get(self, url: str, **options: Any) -> httpx.Response:
        return self.ask("GET", url, **options)

    def post(self, url: str, **options: Any) -> httpx.Response:
        return self.ask("POST", url, **options)

    def json(self, url: str, **options: Any) -> Any:
        response = self.get(url, **options)
        assert response.status_code == 200, response.text
        return response.json()


@pytest.fixture
def settings_of(tmp_path: Path) -> Callable[..., Settings]:
    """Settings with two memory sources and a mirror between them; ``more`` is laid over."""

    def make(**more: Any) -> Settings:
        raw: dict[str, Any] = {
            "instance": {"id": "test"},
            "sources": {
                "lake": {"impl": "federator.testing:CONNECTOR", "schedule": "*/15 * * * *", "store": "api-lake"},
                "copy": {"impl": "federator.testing:CONNECTOR", "store": "api-copy"},
            },
            "mirrors": {"m": {"from": "lake", "to": "copy", "schedule": "@every 15m"}},
        }
        return parse_settings({**raw, **more}, tmp_path / "federator.toml")

    return make


@pytest.fixture
def index(filled: Path, tmp_path: Path) -> Iterator[Index]:
    """What a crawl of ``lake`` would have left; each test has its own."""
    shutil.copy(filled, tmp_path / "federator.db")
    index = open_index("sqlite:///federator.db", base=tmp_path)
    yield index
    index.close()


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("filled")
    index = new_index(directory)
    sales = [table("lake", "sales", f"t{i:02}", doc=f"table number {i}") for i in range(25)]
    secret = {"comment": "x", "aws.secret_access_key": "hunter2", "fs.s3a.token": "t0ken"}
    special = table("lake", "sales", "orders", properties=secret, schema='[{"name":"id","type":"bigint"}]')
    odd = [table("lake", "odd", name, doc=name) for name in ODD]
    foreign = table("lake", "sales", "managed", kind=Kind.MANAGED_TABLE)
    fill(
        index,
        "lake",
        namespace("lake", "sales"),
        namespace("lake", "odd"),
        namespace("lake", "hr"),
        *sales,
        special,
        foreign,
        *odd,
    )
    with acquire_lease(index, "source:lake") as lease:
        draft = revisions.begin_draft(index, lease, "lake", "run-2", 0.0)
        denied = failed_evidence(15, "denied")
        with index.write() as connection:
            coverage.write_coverage(connection, draft, [Coverage("lake", ROOT), Coverage("lake", ("hr",), denied, denied)], {})
        revisions.publish_draft(
            index, lease, draft, added=0, changed=0, removed=0, values={"state": "partial", "message": "hr: denied"}
        )
    with index.write() as connection:
        result = records.find_record(connection, "lake", ("sales", "orders"), is_table=True)
        assert result is not None
        checked = {
            "canonical": result.canonical, "location": result.record.location, "state": "valid", "message": None, "version": 3,
            "rows": 10, "fragments": 1, "schema": '[{"name": "id", "type": "int64"}]', "checked_at": 1.5, "checked_through": "lake",
            "access": "",
        }  # fmt: skip
        verifications.save_verifications(connection, [checked])
    # What is copied is the one file: closing moves what stands in the write-ahead log into it.
    index.close()
    return directory / "federator.db"


@pytest.fixture
def api(index: Index, settings_of: Callable[..., Settings]) -> Api:
    return Api(create_app(settings_of()))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    (tmp_path / "federator.toml").write_text(CONFIG.format(directory=tmp_path), encoding="utf-8")
    store = MemoryStore(str(tmp_path / "lake.json"))
    store.add_table(("sales", "orders"))
    store.add_table(("sales", NAME), doc="odd")
    started: list[Process] = []

    def begin(role: str, **environment: str) -> Process:
        started.append(Process(tmp_path, role, **environment))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
