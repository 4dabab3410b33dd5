"""``instance``: a copied directory is told to be a clone, and a person says which of the two it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from federator.index import audit_log, deployment, open_index
from federator.settings import load
from tests.cli.conftest import Shell


@pytest.fixture
def clone(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """The whole directory of a deployment that has run, copied to another place."""
    index = shell.index()
    deployment.claim(index, load(shell.folder / "federator.toml").instance)
    index.close()
    folder = tmp_path_factory.mktemp("elsewhere") / "copy"
    shutil.copytree(shell.folder, folder)
    yield Shell(folder)
    # Whatever becomes of the copy, the first one goes on.
    assert shell.json("instance", "show")["writes"]


def events(folder: Path) -> list[str]:
    index = open_index("sqlite:///federator.db", base=folder)
    try:
        return [row["kind"] for row in audit_log.events(index)]
    finally:
        index.close()


def test_before_the_first_run_nothing_is_confirmed(shell: Shell) -> None:
    assert shell.run("instance", "show").exit_code == 1
    shell.index().close()
    shown = shell.json("instance", "show")
    assert (shown["instance"], shown["confirmed"], shown["clone"], shown["writes"]) == ("test", None, False, True)
    assert "not confirmed yet" in shell.run("instance", "show").stdout


def test_a_copy_says_that_it_is_one(shell: Shell, clone: Shell) -> None:
    first, copy = shell.json("instance", "show"), clone.json("instance", "show")
    assert (first["clone"], copy["clone"], copy["writes"]) == (False, True, False)
    assert copy["fingerprint"] == first["fingerprint"]
    assert copy["confirmed"] == first["place"] != copy["place"]
    assert "a clone: mirrors are not written to" in clone.run("instance", "show").stdout


def test_doctor_notices_a_clone(shell: Shell, clone: Shell) -> None:
    def index(of: Shell) -> dict[str, str]:
        checks = json.loads(of.run("doctor", "--output", "json").stdout)["checks"]
        return next(check for check in checks if check["name"] == "index")

    assert index(shell)["state"] == "ok"
    assert index(clone)["state"] == "fail"
    assert index(clone)["message"].startswith("this index is a clone")
    assert "federator instance confirm" in index(clone)["hint"]


def test_confirm_makes_it_the_one(shell: Shell, clone: Shell) -> None:
    found = clone.json("instance", "confirm")
    assert (found["clone"], found["writes"], found["confirmed"]) == (False, True, found["place"])
    assert found["fingerprint"] == shell.json("instance", "show")["fingerprint"]
    assert events(clone.folder) == ["instance_confirmed"]


def test_rotate_asks_for_an_instance_of_its_own(shell: Shell, clone: Shell) -> None:
    result = clone.run("instance", "rotate", "--output", "json")
    found = json.loads(result.stdout)
    assert "choose a new [instance] id" in result.stderr
    assert (found["left"], found["clone"], found["writes"]) == ("test", False, False)
    assert found["fingerprint"] != shell.json("instance", "show")["fingerprint"]
    assert "waiting for a new [instance] id: test belongs to another" in clone.run("instance", "show").stdout
    file = clone.folder / "federator.toml"
    file.write_text(file.read_text().replace('id = "test"', 'id = "staging"'))
    assert clone.json("instance", "show")["writes"]
    assert events(clone.folder) == ["instance_rotated"]


def test_a_named_deployment_may_be_anywhere(shell: Shell) -> None:
    shell.index().close()
    file = shell.folder / "federator.toml"
    file.write_text(file.read_text().replace('id = "test"', 'id = "test"\nfingerprint = "${DEPLOYMENT}"'))
    found = json.loads(shell.run("instance", "confirm", "--output", "json", DEPLOYMENT="blue").stdout)
    assert found["place"] == "the fingerprint blue"
    copy = Shell(shell.folder / "copy")
    shutil.copytree(shell.folder, copy.folder)
    shown = [json.loads(copy.run("instance", "show", "--output", "json", DEPLOYMENT=name).stdout) for name in ("blue", "green")]
    assert [each["clone"] for each in shown] == [False, True]
    result = shell.run("instance", "show")
    assert (result.exit_code, "DEPLOYMENT" in result.stderr) == (64, True)


def test_a_changed_id_is_shown_and_stops_mirrors(shell: Shell) -> None:
    index = shell.index()
    deployment.claim(index, load(shell.folder / "federator.toml").instance)
    index.close()
    file = shell.folder / "federator.toml"
    file.write_text(file.read_text().replace('id = "test"', 'id = "renamed"'))
    shown = shell.json("instance", "show")
    assert (shown["instance"], shown["marked"], shown["clone"], shown["writes"]) == ("renamed", "test", False, False)
    assert "renamed: declarations are marked test" in shell.run("instance", "show").stdout
    checks = json.loads(shell.run("doctor", "--output", "json").stdout)["checks"]
    found = next(check for check in checks if check["name"] == "index")
    assert (found["state"], "set [instance] id back" in found["hint"]) == ("fail", True)
