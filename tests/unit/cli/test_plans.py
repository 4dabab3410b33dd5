"""``plans``: output, plan files, and decisions about held plans."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from federator.cli import plan_file
from federator.connector import StateError
from federator.model import TableRecord, canonical_json
from federator.planning.changes import Action, Change, Refusal
from federator.planning.holds import Binds, Hold, LiftedBy
from federator.planning.identity import IDENTITY_CHANGED, changed_text, confirm_command
from federator.planning.plan import Plan
from federator.planning.reasons import Reason
from federator.store import plans
from tests.fixtures.index_content import record_change
from tests.unit.cli.conftest import Shell


def table(path: str, location: str, **properties: str) -> TableRecord:
    return TableRecord("copy", tuple(path.split("$")), location, properties)


def change(action: Action, path: str, before: TableRecord | None, after: TableRecord | None) -> Change:
    return Change(action, "copy", path, "lake", path, "because", before, after)


def plan(*, held: bool = False, refusals: int = 25) -> Plan:
    old, new = (
        table("s$moved", "s3://a/1", team="[x]", gone="1"),
        table("s$moved", "s3://a/2", team="[y]", **{"federator.op": "9"}),
    )
    changes = (
        change(Action.DEREGISTER_TABLE, "s$old", table("s$old", "s3://a/old"), None),
        change(Action.CREATE_NAMESPACE, "s", None, None),
        change(Action.ADOPT, "s$same", table("s$same", "s3://a/3"), table("s$same", "s3://a/3", mark="1")),
        change(Action.UPDATE_TABLE, "s$moved", old, new),
        change(Action.DECLARE_TABLE, "s$new", None, table("s$new", "s3://a/new")),
    )
    refused = tuple(Refusal(Reason.NAME_TAKEN, "copy", f"s$t{n:02}", f"s$t{n:02}", "it was there") for n in range(refusals))
    detail = "5 of 9 tables removed or moved within 24 h, max_delete_percent is 20"
    holds = (Hold("max_delete_percent", detail, Binds.DESTRUCTIVE),) if held else ()
    return Plan("nightly", "digest", 1, 1, changes, refused, holds, 5)


def saved(shell: Shell, plan: Plan) -> None:
    index = shell.index()
    with index.write() as connection:
        state = "held" if plan.held else "ready"
        body = canonical_json(plan.to_json())
        plans.save_plan(connection, digest=plan.digest, mirror=plan.mirror, run_id="run", state=state, body=body)
    index.close()


@pytest.mark.parametrize(
    ("selected", "text"), [(3, "no changes"), (0, "no changes, because the mirror selects no table of its origin")]
)
def test_a_plan_without_changes_says_whether_the_mirror_selects_anything(shell: Shell, selected: int, text: str) -> None:
    unchanged = Plan("nightly", "digest", 1, 1, selected=selected)
    saved(shell, unchanged)
    assert shell.run("plans", "show", unchanged.digest).stdout.splitlines()[0] == f"mirror nightly: {text}"


def test_a_plan_reads_as_what_would_be_done_and_why(shell: Shell) -> None:
    created = plan(held=True)
    saved(shell, created)
    printed = shell.run("plans", "show", created.digest[:8]).stdout
    assert "mirror nightly: - 1 deregister, + 1 namespace, = 1 adopt, ~ 1 update, + 1 declare; 25 refusals" in printed
    for line in (
        "  - deregister  copy$s$old  (because)  waits: max_delete_percent",
        "  2 of 5 changes wait, the others can be applied",
        "  + declare     copy$s$new  s3://a/new  (because)",
        "  ~ update      copy$s$moved  (because)  waits: max_delete_percent",
        "      location: s3://a/1 → s3://a/2",
        "      team: [x] → [y]",
        "      gone: 1 → (none)",
        "    name_taken (25)",
        "      copy$s$t19  (it was there)",
        "      and 5 more; --all shows them",
        f"  to apply it nevertheless: federator plans approve {created.digest[:12]}",
    ):
        assert line in printed.splitlines(), line
    assert "copy$s$t24" in shell.run("plans", "show", created.digest[:8], "--all").stdout


def test_a_held_plan_says_what_was_carried_out(shell: Shell) -> None:
    created = plan(held=True)
    saved(shell, created)
    index = shell.index()
    new, adopted = (
        next(each for each in created.changes if each.action is action) for action in (Action.DECLARE_TABLE, Action.ADOPT)
    )
    record_change(index, created.digest, new)
    record_change(index, created.digest, adopted, "failed", message="copy did not respond")
    index.close()
    printed = shell.run("plans", "show", created.digest).stdout.splitlines()
    assert any(line.startswith("  + declare     copy$s$new  s3://a/new  (because)  carried out ") for line in printed), printed
    assert any(line.endswith("(because)  failed: copy did not respond") for line in printed), printed
    assert "  2 of 5 changes wait, 1 carried out" in printed
    (listed,) = shell.json("plans", "list")["plans"]
    assert (listed["changes"], listed["done"]) == (5, 1)
    outcomes = shell.json("plans", "show", created.digest)["outcomes"]
    states = {each["change"]: each["state"] for each in outcomes}
    assert states == {created.changes.index(new): "done", created.changes.index(adopted): "failed"}


def test_a_plan_that_approval_cannot_release_names_the_command_that_does(shell: Shell) -> None:
    text = changed_text("lake", {"metastore": {"old"}}, [("metastore", "new")])
    held = plan(held=True)
    hold = Hold(IDENTITY_CHANGED, text, Binds.ALL, LiftedBy.CONFIRMATION, confirm_command("lake"))
    created = replace(held, holds=(*held.holds, hold))
    saved(shell, created)
    printed = shell.run("plans", "show", created.digest[:8]).stdout
    assert "  to apply it nevertheless: federator sources confirm lake" in printed.splitlines()
    assert "plans approve" not in printed
    refused = shell.run("plans", "approve", created.digest[:8])
    assert (refused.exit_code, refused.stderr.splitlines()[-1]) == (1, "hint: federator sources confirm lake")


def test_a_rename_is_one_line_and_a_recreation_is_loud(shell: Shell) -> None:
    pair, location = "s$old -> s$new", "s3://a/1"
    away, current = table("s$old", location), table("s$new", location)
    changes = (
        change(
            Action.RECREATE_TABLE,
            "s$fixed",
            table("s$fixed", "s3://a/2", p="1", api_key="a"),
            table("s$fixed", "s3://a/2", p="2", api_key="b"),
        ),
        replace(change(Action.DEREGISTER_TABLE, "s$old", away, None), pair=pair),
        replace(change(Action.DECLARE_TABLE, "s$new", None, current), pair=pair),
        replace(change(Action.DECLARE_TABLE, "s$late", None, table("s$late", "s3://a/3")), pair="s$first -> s$late"),
    )
    created = Plan("nightly", "digest", 1, 1, changes)
    saved(shell, created)
    printed = shell.run("plans", "show", created.digest).stdout.splitlines()
    assert printed[0] == "mirror nightly: ! 1 recreate, > 2 rename"
    for line in (
        "  ! recreate    copy$s$fixed  (because)",
        "      p: 1 → 2",
        "      api_key: (masked) → (masked)",
        "  > rename      copy$s$old → copy$s$new  s3://a/1  (because)",
        "  > rename      copy$s$late  s3://a/3  (because)",
        "  recreate: the object is dropped and declared again; its grants and its history in the catalog can get lost",
    ):
        assert line in printed, line
    assert not any("deregister" in line for line in printed)


def test_approving_and_rejecting_is_recorded(shell: Shell) -> None:
    created = plan(held=True)
    saved(shell, created)
    (waiting,) = shell.json("plans", "list", "--held")["plans"]
    guard = waiting["held"][0].split(":")[0]
    assert (waiting["digest"], guard in shell.run("plans", "list").stdout) == (created.digest, True)
    approved = shell.run("plans", "approve", created.digest[:10])
    assert (approved.exit_code, approved.stdout) == (0, f"approved plan {created.digest[:12]} of mirror nightly\n")
    assert "federator sync nightly" in approved.stderr
    assert guard not in shell.run("plans", "list").stdout
    refused = shell.run("plans", "reject", created.digest)
    assert (refused.exit_code, f"{created.digest[:12]} was approved by " in refused.stderr) == (1, True)
    assert f"federator plans reject {created.digest[:12]} --overrule" in refused.stderr
    assert shell.json("plans", "reject", created.digest, "--overrule")["state"] == "rejected"
    assert shell.json("plans", "list", "--held")["plans"] == []
    proof = shell.json("audit", "verify")
    assert (proof["intact"], proof["events"], proof["unsealed"], proof["first_broken"]) == (True, 2, 0, None)


def test_a_second_approval_says_who_approved_before_and_keeps_its_comment(shell: Shell) -> None:
    created = plan(held=True)
    saved(shell, created)
    assert "already" not in shell.run("plans", "approve", created.digest, "--comment", "the owner agreed", LOGNAME="ann").stderr
    second = shell.run("plans", "approve", created.digest, "--comment", "and so do I", LOGNAME="bob")
    assert re.search(r"ann approved it already, \d{4}-\d\d-\d\d ", second.stderr)
    again = shell.json("plans", "approve", created.digest)
    assert (again["decided_by"], "decided_at" in again) == ("ann", True)
    comments = [event["detail"].get("comment") for event in shell.json("audit", "list", "--kind", "plan_approved")["events"]]
    assert comments == [None, "and so do I", "the owner agreed"]


def test_a_plan_without_changes_is_listed_as_such(shell: Shell) -> None:
    saved(shell, plan())
    saved(shell, replace(plan(), changes=()))
    listed = shell.run("plans", "list").stdout.splitlines()[1:]
    assert {re.split(r"  +", line)[2] for line in listed} == {"ready", "no changes"}


def test_only_a_held_plan_is_decided(shell: Shell) -> None:
    created = plan()
    saved(shell, created)
    result = shell.run("plans", "approve", created.digest)
    assert result.exit_code == 1
    assert "is ready and cannot be approved" in result.stderr
    assert shell.run("plans", "reject", created.digest).exit_code == 0
    assert shell.run("plans", "approve", "no such").exit_code == 64


def test_plans_travel_through_a_file(shell: Shell) -> None:
    created, file = plan(), shell.folder / "plans.json"
    saved(shell, created)
    plan_file.save_plans(file, [created])
    index = shell.index()
    assert plan_file.load_plans(file, index) == [(created, created.digest)]
    index.close()
    assert json.loads(file.read_text())["version"] == 1


def _other_version(body: dict[str, Any]) -> None:
    body["version"] = 2


def _foreign(body: dict[str, Any]) -> None:
    body["plans"][0]["digest"] = "0" * 64


def _broken(body: dict[str, Any]) -> None:
    del body["plans"][0]["plan"]["changes"]


@pytest.mark.parametrize("spoil", [_other_version, _foreign, _broken])
def test_a_file_that_this_index_did_not_make_is_refused(shell: Shell, spoil: Any) -> None:
    created, file = plan(), shell.folder / "plans.json"
    saved(shell, created)
    plan_file.save_plans(file, [created])
    body = json.loads(file.read_text())
    spoil(body)
    file.write_text(json.dumps(body))
    index = shell.index()
    with pytest.raises(StateError):
        plan_file.load_plans(file, index)
    index.close()


def test_an_altered_plan_is_refused(shell: Shell) -> None:
    created, file = plan(), shell.folder / "plans.json"
    saved(shell, created)
    plan_file.save_plans(file, [created])
    file.write_text(file.read_text().replace("s3://a/new", "s3://evil/new"))
    result = shell.run("apply", str(file))
    assert result.exit_code == 1
    assert "was altered after it was created" in result.stderr


def test_apply_wants_an_answer_and_a_file_that_is_there(shell: Shell) -> None:
    assert shell.run("apply").exit_code == 64
    assert "no such file" in shell.run("apply", "nothing.json").stderr


def test_each_change_says_whether_it_waits_and_an_approval_lets_it_go(shell: Shell) -> None:
    created = plan(held=True)
    saved(shell, created)
    data = json.loads(shell.run("plans", "show", created.digest, "--output", "json").stdout)
    assert [(item["change"], item["target"], item["reason"], item["held_by"]) for item in data["waiting"]] == [
        (0, "copy$s$old", "held_by_guard", "max_delete_percent"), (3, "copy$s$moved", "held_by_guard", "max_delete_percent"),
    ]  # fmt: skip
    shell.run("plans", "approve", created.digest)
    assert json.loads(shell.run("plans", "show", created.digest, "--output", "json").stdout)["waiting"] == []
    assert "waits" not in shell.run("plans", "show", created.digest).stdout


def test_show_names_the_refusals_about_a_table_at_both_ends(filled: Shell) -> None:
    refusal = Refusal(Reason.NAME_TAKEN, "copy", "sales$orders", "sales$orders", "it was there")
    refused = Plan("nightly", "digest", 1, 1, (), (refusal,), (), 1)
    saved(filled, refused)
    expected = {"mirror": "nightly", "reason": "name_taken", "detail": "it was there", "plan": refused.digest}
    for path in ("lake$sales$orders", "copy$sales$orders"):
        assert filled.json("show", path)["not_mirrored"] == [expected]
        assert "mirror nightly: name_taken: it was there" in filled.run("show", path).stdout
    assert filled.json("show", "lake$odd$50%")["not_mirrored"] == []
