"""A migrated target: no writer may use it until ``federator sources confirm``, on a terminal of 80 columns."""

from __future__ import annotations

import copy
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from federator.api.app import create_app
from federator.store import audit_log
from federator.store import ledger as entries
from tests.fixtures.product import MEMORY, PARTIAL, Product
from tests.fixtures.relay import Noting
from tests.stubs.unity import UnityStub
from tests.stubs.unity.world import World
from tests.unit.api.conftest import Api

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(600)]

_STYLE = re.compile("\x1b\\[[0-9;]*m")
NAMES = tuple(f"t{number:02}" for number in range(12))


@pytest.fixture
def stubs() -> Iterator[tuple[UnityStub, UnityStub]]:
    with UnityStub() as first, UnityStub() as second:
        first.world.create_catalog({"name": "main"}, None)
        yield first, second


def migrated(world: World) -> World:
    """What a migration makes of a metastore: everything with its name, properties and location, under new ids."""
    made = World(
        catalogs=copy.deepcopy(world.catalogs), schemas=copy.deepcopy(world.schemas), tables=copy.deepcopy(world.tables)
    )
    for rows, key in ((made.catalogs, "id"), (made.schemas, "schema_id"), (made.tables, "table_id")):
        for row in rows.values():
            row[key] = str(uuid.uuid4())
    return made


def on_terminal(product: Product, *words: str, columns: int = 80) -> str:
    """What a command prints on a terminal of so many columns."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-c", "from federator.cli import main; main()", *words], cwd=product.folder,
        env={**environment, "NO_COLOR": "1", "TERM": "xterm"}, stdin=terminal, stdout=terminal, stderr=terminal,
    )  # fmt: skip
    os.close(terminal)
    printed = b""
    try:
        while chunk := os.read(controller, 1 << 16):
            printed += chunk
    except OSError:
        # The end of a terminal whose other side was closed.
        pass
    os.close(controller)
    assert process.wait() == 0, printed.decode()
    return _STYLE.sub("", printed.decode().replace("\r\n", "\n"))


def test_a_migrated_target_is_refused_shown_and_confirmed(stubs: tuple[UnityStub, UnityStub], tmp_path: Path) -> None:
    first, second = stubs
    product, relay = Product(tmp_path), Noting(first.url)
    product.configure(
        {"impl": MEMORY, "file": str(tmp_path / "origin.json")},
        {"impl": "unity", "endpoint": relay.uri, "catalog": "main", "allow_drop": True},
        namespace="main$sales",
    )
    for name in NAMES:
        (tmp_path / "lake" / name).mkdir(parents=True)
        product.store("origin").add_table(("sales", name), f"file:{tmp_path}/lake/{name}")
    assert len(product.sync()["outcomes"]) == len(NAMES) + 1
    before, ids = product.known("target"), native_ids(product)

    second.world = migrated(first.world)
    moved = second.world.tables["main", "sales", "t00"]
    moved["storage_location"] = "file:///elsewhere/t00"
    relay.target = second.url
    product.store("origin").add_table(("sales", "new"), f"file:{tmp_path}/lake/new")
    (target,) = (source for source in product.sync(PARTIAL)["sources"] if source["name"] == "target")
    old, new = (f"metastore {stub.world.metastore_id}" for stub in (first, second))
    assert [text for text in (old, new, "federator sources confirm target") if text not in target["message"]] == []
    content = copy.deepcopy(second.world.tables)

    # Whoever writes is told.
    check = next(each for each in doctor(product) if each["name"] == "identity target")
    assert (check["state"], check["hint"]) == ("fail", "federator sources confirm target")
    assert old in check["message"]
    commands = (
        ["mirror", "prune", "copy", "--yes"],
        ["ledger", "rebuild", "copy", "--yes"],
        ["apply", "--yes"],
    )
    refused = {words[0]: product.run(*words) for words in commands}
    assert {name: result.output for name, result in refused.items() if result.exit_code not in (1, 3, 4)} == {}
    api = Api(create_app(product.settings))
    for call, body in (
        ("namespace/target$main$more/create", {}),
        ("namespace/target$main$sales/drop", {}),
        ("table/target$main$sales$own/declare", {"location": "file:///elsewhere/own"}),
        ("table/target$main$sales$own/register", {"location": "file:///elsewhere/own"}),
        ("table/target$main$sales$t01/deregister", {}),
        ("table/target$main$sales$t01/rename", {"new_table_name": "renamed"}),
        ("table/target$main$sales$t01/drop", {}),
    ):
        response = api.post(f"/v1/{call}", json=body)
        assert (response.status_code, response.json()["code"]) == (503, 17), (call, response.text)
        assert "another catalog responds for target" in response.json()["error"], (call, response.text)
        assert "federator sources confirm target" in response.text
    assert (second.world.tables, product.known("target"), native_ids(product)) == (content, before, ids)
    assert sorted(path.name for path in (tmp_path / "lake").iterdir()) == list(NAMES), "no data was deleted"

    printed = on_terminal(product, "sources", "confirm", "target")
    assert [line for line in printed.splitlines() if len(line) > 80] == []
    for text in (old, new, "13 ledger rows affected\n", "target$main$sales$t01", "and 3 more"):
        assert text in printed
    assert "accept the new identity with\n    federator sources confirm target --yes\n" in printed, (
        "the command is in one piece"
    )
    assert native_ids(product) == ids, "only shown"

    shown = product.json("sources", "confirm", "target")
    assert (shown["confirmed"], shown["rebound"], shown["ledger_rows"]) == (False, [], len(NAMES) + 1)
    confirmed = product.json("sources", "confirm", "target", "--yes")
    assert (confirmed["confirmed"], sorted(confirmed["rebound"])) == (True, [f"main$sales${name}" for name in NAMES[1:]])
    rebound = native_ids(product)
    assert {path for path, native in rebound.items() if native != ids[path]} == set(confirmed["rebound"])
    index = product.index
    (event,) = [row for row in audit_log.list_events(index, limit=1000) if row.kind == "source_confirmed"]
    index.close()
    assert event.subject == "target"
    assert [each["name"] for each in doctor(product) if each["name"].startswith("identity")] == []
    again = product.run("sources", "confirm", "target", "--yes")
    assert (again.exit_code, "no identity of target waits" in again.stderr) == (1, True)

    # What is intact is ours again; what is not is left alone.
    result = product.sync()
    (plan,) = result["plans"]
    assert {change["target_path"] for change in plan["changes"]} == {"main$sales$new"}
    assert {(refusal["target_path"], refusal["reason"]) for refusal in plan["refusals"]} == {("main$sales$t00", "not_ours")}
    # Replicas: both are accepted from now on.
    relay.target = first.url
    assert "failed" not in {source["state"] for source in product.sync()["sources"]}


def doctor(product: Product) -> list[dict[str, str]]:
    found = json.loads(product.run("doctor", "--output", "json").stdout)["checks"]
    assert isinstance(found, list)
    return found


def native_ids(product: Product) -> dict[str, str | None]:
    index = product.index
    try:
        with index.read() as connection:
            return {entry.target_path: entry.native_id for entry in entries.list_entries(connection, "copy")}
    finally:
        index.close()
