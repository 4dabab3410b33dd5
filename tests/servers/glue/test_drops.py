"""DropNamespace in a real Glue, which drops all tables of the database: tables that no listing shows must survive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance_namespace as ln
import pytest
from lance_namespace import errors
from typer.testing import CliRunner

from federator.cli.app import app
from federator.planning.plan import Plan
from federator.service import Federator
from federator.settings import load_settings
from federator.testing import MemoryStore
from tests.adversary.http_proxy import HttpProxy, Request, Response
from tests.adversary.lies import Edit, Lie, Op
from tests.fixtures.glue import GlueAccount
from tests.stories.test_whole_way import glue
from tests.unit.api.lance.conftest import served
from tests.unit.cli.conftest import Shell

pytestmark = pytest.mark.timeout(60)

CONFIRMED = {"header.x-federator-confirm": "cascades"}
#: what a permission filter makes of every listing
HIDDEN = Lie("GetTables", Edit(("TableList",), Op.CLEAR))
ONCE = Lie("GetTables", Edit(("TableList",), Op.CLEAR), times=1)


@pytest.fixture
def proxy(glue_account: GlueAccount) -> Iterator[HttpProxy]:
    """In front of an account with a table in the database ``sales``."""
    client = glue_account.client()
    client.create_database(DatabaseInput={"Name": "sales"})
    client.create_table(DatabaseName="sales", TableInput={"Name": "users", "TableType": "EXTERNAL_TABLE"})
    with HttpProxy(glue_account.url) as opened:
        yield opened


def connect(account: GlueAccount, proxy: HttpProxy, **more: str) -> Any:
    return ln.connect("federator_connectors.glue.GlueNamespace", {**account.properties, "endpoint": proxy.url, **more})


def tables(account: GlueAccount) -> list[str]:
    return [table["Name"] for table in account.client().get_tables(DatabaseName="sales")["TableList"]]


def test_what_a_listing_hides_is_dropped_only_when_the_caller_confirms_it(glue_account: GlueAccount, proxy: HttpProxy) -> None:
    facade = connect(glue_account, proxy)
    proxy.lie(HIDDEN)
    for context in (None, {"header.x-federator-confirm": "yes"}):
        with pytest.raises(errors.InvalidInputError, match=r"with every table in it(.|\n)*x-federator-confirm: cascades"):
            facade.drop_namespace(ln.DropNamespaceRequest(id=["sales"], context=context))
        request = ln.CreateNamespaceRequest(id=[glue_account.account_id, "sales"], mode="Overwrite", context=context)
        with pytest.raises(errors.InvalidInputError, match="with every table in it"):
            facade.create_namespace(request)
    assert "DeleteDatabase" not in proxy.calls
    assert tables(glue_account) == ["users"]
    with pytest.raises(errors.NamespaceNotFoundError):
        facade.drop_namespace(ln.DropNamespaceRequest(id=["none"]))


@pytest.mark.parametrize("confirmed", ["request", "property"])
def test_one_listing_that_lies_drops_nothing(glue_account: GlueAccount, proxy: HttpProxy, confirmed: str) -> None:
    by_property = confirmed == "property"
    facade = connect(glue_account, proxy, **({"glue.drop_cascades": "confirmed"} if by_property else {}))
    proxy.lie(ONCE)
    request = ln.DropNamespaceRequest(id=["sales"], context=None if by_property else CONFIRMED)
    with pytest.raises(errors.NamespaceNotEmptyError, match="it contains users"):
        facade.drop_namespace(request)
    assert proxy.met == 1
    assert tables(glue_account) == ["users"]
    glue_account.client().delete_table(DatabaseName="sales", Name="users")
    facade.drop_namespace(request)
    with pytest.raises(errors.NamespaceNotFoundError):
        facade.describe_namespace(ln.DescribeNamespaceRequest(id=["sales"]))


def test_a_lance_client_confirms_through_the_service(
    glue_account: GlueAccount, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("served")
    source = {"impl": "glue", **glue_account.properties}
    for key in ("access_key_id", "secret_access_key", "session_token"):
        (directory / key).write_text(source[key])
        source[key] = f"file:{directory / key}"
    path = ["shop", glue_account.account_id, "sales"]
    with served(directory, {"shop": source}, bare=True) as service:
        facade: Any = ln.connect("rest", {"uri": service.url})
        facade.create_namespace(ln.CreateNamespaceRequest(id=path))
        for address, body in (("/v1/namespace/{}/drop", {}), ("/v1/namespace/{}/create", {"mode": "Overwrite"})):
            refused = service.post(address.format("$".join(path)), body)
            assert (refused.status_code, refused.json()["code"]) == (400, 13), refused.text
        assert service.post("/DropNamespace", {"id": {"namespace": path[:-1], "name": path[-1]}}).status_code >= 400
        facade.namespace_exists(ln.NamespaceExistsRequest(id=path))
        facade.drop_namespace(ln.DropNamespaceRequest(id=path, context=CONFIRMED))
        with pytest.raises(errors.NamespaceNotFoundError):
            facade.namespace_exists(ln.NamespaceExistsRequest(id=path))


class Permissions(HttpProxy):
    """Hides one table, as a permission filter does: no listing has it, and nobody may read it."""

    def forward(self, request: Request, target: tuple[str, int]) -> Response:
        response = super().forward(request, target)
        if request.call == "GetTable" and json.loads(request.body)["Name"] == "hidden":
            return replace(response, status=400, body=b'{"__type": "AccessDeniedException", "message": "not permitted"}')
        if request.call == "GetTables":
            body = json.loads(response.body)
            body["TableList"] = [table for table in body["TableList"] if table["Name"] != "hidden"]
            return replace(response, body=json.dumps(body).encode())
        return response


def _mirror(account: GlueAccount, proxy: HttpProxy, directory: Path) -> Shell:
    """A configuration that mirrors a catalog in a file into the account."""
    section = glue(account, directory).replace(f'"{account.url}"', f'"{proxy.url}"')
    (directory / "federator.toml").write_text(
        f'[instance]\nid = "test"\n[verify]\nenabled = false\n[sources.target]\n{section}'
        f'[sources.origin]\nimpl = "federator.testing:CONNECTOR"\nfile = "{directory}/origin.json"\n'
        '[mirrors.copy]\nfrom = "origin"\nto = "target"\nmisses_before_delete = 1\nmin_miss_interval = "0s"\n'
        "max_delete_percent = 100\nprune_unselected = true\n"
    )
    return Shell(directory)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("spark")
def test_a_mirror_leaves_a_namespace_that_may_hide_tables_to_a_person(
    glue_account: GlueAccount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, origin = glue_account.client(), MemoryStore(str(tmp_path / "origin.json"))

    def databases() -> set[str]:
        return {database["Name"] for database in client.get_databases()["DatabaseList"]}

    with Permissions(glue_account.url) as proxy:
        shell = _mirror(glue_account, proxy, tmp_path)
        for namespace, names in {"sales": ("a", "b"), "other": ("a", "b", "c", "d", "e")}.items():
            for name in names:
                origin.add_table((namespace, name), f"s3://lake/{namespace}/{name}")
        done = shell.run("sync")
        assert (done.exit_code, databases()) == (0, {"sales", "other"}), done.output
        client.create_table(DatabaseName="sales", TableInput={"Name": "hidden", "TableType": "EXTERNAL_TABLE"})
        for name in ("a", "b"):
            origin.remove(("sales", name))
        origin.remove(("sales",))

        # The mirror empties the namespace that it made, and leaves it, run after run.
        for _ in range(2):
            done = shell.run("sync")
            assert done.exit_code == 0, done.output
        assert "drop_cascades" in done.output
        assert tables(glue_account) == ["hidden"]

        # A person is told what the command would take, and says no: the plan is stored, and no other way of applying it drops anything.
        assert "a confirmation is needed" in shell.run("mirror", "prune", "copy").output
        monkeypatch.setattr("federator.cli.run_commands.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
        options = {"FEDERATOR_CONFIG": str(tmp_path / "federator.toml"), "NO_COLOR": "1"}
        asked = CliRunner().invoke(app, ["mirror", "prune", "copy"], input="n\n", env=options)
        warning = (
            f"drops a namespace with every table in it, also those that its listing leaves out: {glue_account.account_id}$sales"
        )
        assert warning in asked.output
        (newest, *_) = shell.json("plans", "list")["plans"]
        stored = Plan.from_json(shell.json("plans", "show", newest["digest"])["plan"])
        assert [change.action.value for change in stored.changes] == ["drop_namespace"]
        result = Federator.open(load_settings(tmp_path / "federator.toml")).apply([(stored, stored.digest)])
        assert [(outcome.state.value, outcome.code) for outcome in result.outcomes] == [("skipped", "drop_cascades")]
        assert tables(glue_account) == ["hidden"]

        # Neither does a client of the service, unless it says that it knows.
        (tmp_path / "served").mkdir()
        source = {"impl": "glue", **glue_account.properties, "endpoint": proxy.url}
        source |= {key: f"file:{tmp_path / key}" for key in ("access_key_id", "secret_access_key", "session_token")}
        with served(tmp_path / "served", {"shop": source}, bare=True) as service:
            address = f"/v1/namespace/shop${glue_account.account_id}$sales/drop"
            refused = service.post(address, {"mode": "Fail", "behavior": "Restrict"})
            assert (refused.status_code, refused.json()["code"]) == (400, 13), refused.text
        assert "DeleteDatabase" not in proxy.calls
        assert tables(glue_account) == ["hidden"]

        pruned = shell.run("mirror", "prune", "copy", "--yes")
        assert pruned.exit_code == 0, pruned.output
        assert databases() == {"other"}
