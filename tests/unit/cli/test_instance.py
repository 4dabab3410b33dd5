"""``instance``: a copied directory is recognised as a clone; ``confirm`` or ``rotate`` decides which one continues."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from federator.model import canonical_json
from federator.planning.plan import Plan
from federator.service import Federator
from federator.settings import load_settings
from federator.store import audit_log, deployment, open_index, plans
from tests.unit.cli.conftest import Shell


@pytest.fixture
def clone(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """The whole directory of a deployment that has run, copied to another place."""
    index = shell.index()
    deployment.claim_site(index, load_settings(shell.folder / "federator.toml").instance)
    index.close()
    folder = tmp_path_factory.mktemp("elsewhere") / "copy"
    shutil.copytree(shell.folder, folder)
    yield Shell(folder)
    # Whatever becomes of the copy, the first one goes on.
    assert shell.json("instance", "show")["writes"]


def events(folder: Path) -> list[str]:
    index = open_index("sqlite:///federator.db", base=folder)
    try:
        return [row.kind for row in audit_log.list_events(index)]
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
    assert "a clone: mirrors do not write" in clone.run("instance", "show").stdout


def test_doctor_notices_a_clone(shell: Shell, clone: Shell) -> None:
    def index(of: Shell) -> dict[str, str]:
        checks = json.loads(of.run("doctor", "--output", "json").stdout)["checks"]
        return next(check for check in checks if check["name"] == "index")

    assert index(shell)["state"] == "ok"
    assert index(clone)["state"] == "fail"
    assert index(clone)["message"].startswith("this index is a clone")
    assert "federator instance confirm" in index(clone)["hint"]


def test_a_copy_fails_to_apply_also_a_plan_without_changes(shell: Shell, clone: Shell) -> None:
    """The first sync of a copy plans nothing as a rule, and it is the time to say that nothing will be written."""
    for opened, state in ((shell, "ok"), (clone, "partial")):
        settings = load_settings(opened.folder / "federator.toml")
        index = open_index("sqlite:///federator.db", base=opened.folder)
        rule = settings.mirror_rule("nightly")
        plan = Plan(rule.name, rule.digest, 0, 0, (), (), (), 0)
        with index.write() as connection:
            body = canonical_json(plan.to_json())
            plans.save_plan(connection, digest=plan.digest, mirror=plan.mirror, run_id="run", state="ready", body=body)
        index.close()
        federator = Federator.open(settings, create=False)
        result = federator.apply([(plan, plan.digest)])
        federator.index.close()
        errors = result.errors
        assert (result.state, list(errors)) == (state, [] if opened is shell else ["mirror nightly"])
    assert errors["mirror nightly"].startswith("this index is a clone: it belongs to ")
    assert "federator instance confirm if it moved here" in errors["mirror nightly"]


def test_confirm_makes_it_the_one(shell: Shell, clone: Shell) -> None:
    result = clone.json("instance", "confirm")
    assert (result["clone"], result["writes"], result["confirmed"]) == (False, True, result["place"])
    assert result["fingerprint"] == shell.json("instance", "show")["fingerprint"]
    assert events(clone.folder) == ["instance_confirmed"]


def test_rotate_asks_for_an_instance_of_its_own(shell: Shell, clone: Shell) -> None:
    result = clone.run("instance", "rotate", "--output", "json")
    results = json.loads(result.stdout)
    assert "choose a new [instance] id" in result.stderr
    assert (results["left"], results["clone"], results["writes"]) == ("test", False, False)
    assert results["fingerprint"] != shell.json("instance", "show")["fingerprint"]
    assert "waiting for a new [instance] id: test belongs to another" in clone.run("instance", "show").stdout
    file = clone.folder / "federator.toml"
    file.write_text(file.read_text().replace('id = "test"', 'id = "staging"'))
    assert clone.json("instance", "show")["writes"]
    assert events(clone.folder) == ["instance_rotated"]


def test_a_named_deployment_may_be_anywhere(shell: Shell) -> None:
    shell.index().close()
    file = shell.folder / "federator.toml"
    file.write_text(file.read_text().replace('id = "test"', 'id = "test"\nfingerprint = "${DEPLOYMENT}"'))
    results = json.loads(shell.run("instance", "confirm", "--output", "json", DEPLOYMENT="blue").stdout)
    assert results["place"] == "the fingerprint blue"
    copy = Shell(shell.folder / "copy")
    shutil.copytree(shell.folder, copy.folder)
    shown = [json.loads(copy.run("instance", "show", "--output", "json", DEPLOYMENT=name).stdout) for name in ("blue", "green")]
    assert [item["clone"] for item in shown] == [False, True]
    result = shell.run("instance", "show")
    assert (result.exit_code, "DEPLOYMENT" in result.stderr) == (64, True)


def test_a_changed_id_is_shown_and_stops_mirrors(shell: Shell) -> None:
    index = shell.index()
    deployment.claim_site(index, load_settings(shell.folder / "federator.toml").instance)
    index.close()
    file = shell.folder / "federator.toml"
    file.write_text(file.read_text().replace('id = "test"', 'id = "renamed"'))
    shown = shell.json("instance", "show")
    assert (shown["instance"], shown["marked"], shown["clone"], shown["writes"]) == ("renamed", "test", False, False)
    assert "renamed: declarations are marked test" in shell.run("instance", "show").stdout
    checks = json.loads(shell.run("doctor", "--output", "json").stdout)["checks"]
    result = next(check for check in checks if check["name"] == "index")
    assert (result["state"], "set [instance] id back" in result["hint"]) == ("fail", True)
