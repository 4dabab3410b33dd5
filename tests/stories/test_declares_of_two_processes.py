"""Two processes of one index that declare the same name in Unity: a plan's application, and a principal's direct write.

Unity answers 200 to both of two concurrent creates, and the name is 500 for ever after. The two may write through two sources of the
same server.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import lance
import pyarrow as pa
import pytest

from federator.api.app import create_app
from federator.apply import table_locks
from federator.service import Federator
from federator.settings import load_settings
from federator.stages.declare import DeclareSpec
from federator.store import migrations, open_index
from tests.fixtures.waiting import wait_until
from tests.stubs.unity import UnityStub
from tests.unit.api.conftest import Api
from tests.unit.api.service_process import Process

pytestmark = pytest.mark.timeout(300)
NAME = ("main", "s", "t")
#: the source of the direct writes, by index: that of the plan, and another of the same server
DIRECT_SOURCES = {"sqlite": "uc", "postgresql": "other"}


class Held(UnityStub):
    """Keeps the first creation of a table between its check for the name and the creation, until ``go`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.creations = 0
        self.go = threading.Event()

    def meets(self, method: str, path: str, raw: str) -> bool:
        existed = super().meets(method, path, raw)
        if method == "POST" and path.endswith("/tables"):
            self.creations += 1
            if self.creations == 1:
                assert self.go.wait(240)
        return existed


@pytest.fixture
def unity() -> Iterator[Held]:
    with Held() as stub:
        stub.world.create_catalog({"name": "main"}, None)
        stub.world.create_schema({"name": "s", "catalog_name": "main"}, None)
        yield stub
        stub.go.set()


@pytest.fixture(params=["sqlite", "postgresql"])
def config(request: pytest.FixtureRequest, tmp_path: Path, unity: Held) -> Path:
    url = request.getfixturevalue("postgres_database")() if request.param == "postgresql" else "sqlite:///federator.db"
    index = open_index(url, base=tmp_path)
    migrations.upgrade_schema(index)
    index.close()
    lance.write_dataset(pa.table({"id": [1]}), str(tmp_path / "orders.lance"))
    file = tmp_path / "federator.toml"
    file.write_text(
        f'[instance]\nid = "test"\n[index]\nurl = "{url}"\n[serve]\nport = 0\n[verify]\nenabled = false\n'
        f'[sources.uc]\nimpl = "unity"\nendpoint = "{unity.url}"\n'
        f'[sources.other]\nimpl = "unity"\nendpoint = "{unity.url}/"\ncatalog = "main"\n',
        encoding="utf-8",
    )
    return file


@pytest.fixture
def table(request: pytest.FixtureRequest) -> str:
    """The identifier for direct writes."""
    return "%24".join([DIRECT_SOURCES[request.node.callspec.params["config"]], *NAME])


@pytest.fixture
def api(config: Path) -> Iterator[Api]:
    app = create_app(load_settings(config))
    yield Api(app)
    app.state.writer.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_locks, "TABLE_WAIT_SECONDS", 0.3)


@pytest.mark.usefixtures("impatient")
def test_a_direct_write_does_not_race_the_application_of_a_plan(config: Path, unity: Held, api: Api, table: str) -> None:
    words = ["declare", str(config.parent / "orders.lance"), "--into", "uc", "--as", "$".join(NAME), "--yes"]
    command = [str(Path(sys.executable).with_name("federator")), *words]
    with subprocess.Popen(command, cwd=config.parent, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: unity.creations == 1 or process.poll() is not None)
            response = _declare(api.post, table)
            unity.go.set()
            assert process.wait(240) == 0
        finally:
            process.kill()
    assert (response.status_code, response.json()["code"]) == (409, 14), response.text
    assert (unity.creations, unity.world.broken) == (1, set())
    assert api.get(f"/api/v1/tables/{'%24'.join(['uc', *NAME])}").status_code == 200, (
        "the index knows a source that no crawl has read"
    )
    assert _declare(api.post, table).json()["code"] == 5, "the lock is free after the application"


@pytest.mark.usefixtures("impatient")
def test_the_application_of_a_plan_does_not_race_a_direct_write(config: Path, unity: Held, table: str) -> None:
    process, federator = Process(config.parent, "api"), Federator.open(load_settings(config))
    try:
        url = process.url()
        plans = federator.declare(DeclareSpec([str(config.parent / "orders.lance")], ["uc"], "$".join(NAME))).plans
        with ThreadPoolExecutor(1) as threads:
            sent = threads.submit(_declare, lambda path, **body: httpx.post(url + path, timeout=240, **body), table)
            try:
                wait_until(lambda: unity.creations == 1)
                result = federator.apply([(plan, plan.digest) for plan in plans])
            finally:
                # Before the end of the block, which waits for the thread.
                unity.go.set()
            assert sent.result().status_code == 200, sent.result().text
    finally:
        process.kill()
        federator.index.close()
    assert [(outcome.state.value, outcome.code_text) for outcome in result.outcomes] == [("skipped", "lease")]
    assert (result.state, unity.creations, unity.world.broken) == ("partial", 1, set())


def _declare(post: Callable[..., httpx.Response], table: str) -> httpx.Response:
    return post(f"/v1/table/{table}/declare", json={"location": "s3://lake/direct"})
