"""A call that takes effect after its outcome was settled, in a real Glue: the journal knows its object, whatever the origin is now."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from federator.testing import MemoryStore
from tests.adversary.http_proxy import HttpProxy, Request, Response
from tests.fixtures.glue import GlueAccount
from tests.stories.test_whole_way import glue
from tests.unit.cli.conftest import Shell

pytestmark = pytest.mark.timeout(300)


class Delayed(HttpProxy):
    """Keeps each request of one operation, and resets the connection of its caller. ``land`` forwards what was kept."""

    def __init__(self, target: str, call: str) -> None:
        super().__init__(target)
        self._call = call
        self._kept: list[Request] = []

    def forward(self, request: Request, target: tuple[str, int]) -> Response:
        if request.call == self._call:
            self._kept.append(request)
            raise ConnectionAbortedError
        return super().forward(request, target)

    def serve(self, connection: socket.socket) -> None:
        try:
            super().serve(connection)
        except ConnectionAbortedError:
            connection.close()

    def land(self) -> None:
        self._call = ""
        responses = [self.forward(request, self.target) for request in self._kept]
        assert responses
        assert {response.status for response in responses} == {200}
        self._kept.clear()


@pytest.fixture
def origin(tmp_path: Path) -> MemoryStore:
    origin = MemoryStore(str(tmp_path / "origin.json"))
    origin.add_table(("sales", "orders"), "s3://lake/orders")
    origin.add_table(("sales", "users"), "s3://lake/users")
    return origin


def mirror(account: GlueAccount, url: str, directory: Path) -> Shell:
    """A mirror of a catalog in a file into the account, which is reached at ``url``."""
    return configured(
        directory, origin=memory(directory / "origin.json"), target=glue(account, directory).replace(account.url, url, 1)
    )


def memory(file: Path) -> str:
    """The properties of a catalog in a file."""
    return f'impl = "federator.testing:CONNECTOR"\nfile = "{file}"\n'


def configured(directory: Path, *, origin: str, target: str) -> Shell:
    """A mirror between two sources, which removes a copy after one miss."""
    (directory / "federator.toml").write_text(
        f'[instance]\nid = "test"\n[verify]\nenabled = false\n[sources.origin]\n{origin}[sources.target]\n{target}'
        '[mirrors.copy]\nfrom = "origin"\nto = "target"\nmisses_before_delete = 1\nmin_miss_interval = "0s"\n'
        "max_delete_percent = 100\n"
    )
    return Shell(directory)


def locations(account: GlueAccount) -> dict[str, str]:
    tables = account.client().get_tables(DatabaseName="sales")["TableList"]
    return {table["Name"]: table["StorageDescriptor"]["Location"] for table in tables}


@pytest.mark.usefixtures("spark")
def test_a_declaration_that_landed_late_is_removed_with_its_origin(
    glue_account: GlueAccount, origin: MemoryStore, tmp_path: Path
) -> None:
    with Delayed(glue_account.url, "CreateTable") as proxy:
        shell = mirror(glue_account, proxy.url, tmp_path)
        assert shell.run("sync").exit_code != 0
        assert locations(glue_account) == {}
        origin.remove(("sales", "orders"))
        proxy.land()
        assert set(locations(glue_account)) == {"orders", "users"}
        for _ in range(3):
            done = shell.run("sync")
        assert done.exit_code == 0, done.output
        assert set(locations(glue_account)) == {"users"}
        written = shell.json("audit", "list", "--kind", "write")["events"]
        orders = [event for event in reversed(written) if event["subject"].endswith("$orders")]
        assert [(event["detail"]["action"], event["detail"]["state"]) for event in orders] == [
            ("declare_table", "failed"),
            ("declare_table", "done"),
            ("deregister_table", "done"),
        ]


@pytest.mark.usefixtures("spark")
def test_an_update_that_landed_late_is_replaced_by_what_the_origin_has(
    glue_account: GlueAccount, origin: MemoryStore, tmp_path: Path
) -> None:
    with Delayed(glue_account.url, "UpdateTable") as proxy:
        shell = mirror(glue_account, proxy.url, tmp_path)
        assert shell.run("sync").exit_code == 0
        origin.add_table(("sales", "orders"), "s3://lake/orders_2")
        shell.run("sync")
        assert locations(glue_account)["orders"] == "s3://lake/orders"
        origin.add_table(("sales", "orders"), "s3://lake/orders_3")
        proxy.land()
        assert locations(glue_account)["orders"] == "s3://lake/orders_2"
        for _ in range(3):
            done = shell.run("sync")
        assert done.exit_code == 0, done.output
        assert locations(glue_account)["orders"] == "s3://lake/orders_3"
