"""The ledger can be rebuilt from the audit events of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from federator.audit import seal_pending
from federator.connector import SourceSpec
from federator.store import Index, audit_log
from federator.store import tables as t
from tests.adversary.killing import SUBJECTS, TARGET, Orders, Site, _work
from tests.fixtures.index import new_index
from tests.fixtures.ledger_replay import replay_ledger

KEY = ("mirror", "origin_source", "origin_path", "target_path", "is_table")


def events(index: Index) -> list[dict[str, Any]]:
    return [json.loads(row.event) for row in audit_log.iter_events(index)]


def ledger(index: Index) -> dict[tuple[Any, ...], dict[str, Any]]:
    with index.read() as connection:
        rows = connection.execute(select(t.ledger)).mappings().all()
    found = [{name: value for name, value in row.items() if name != "updated_at"} for row in rows]
    return {tuple(row[name] for name in KEY): row for row in found}


@pytest.fixture
def location(tmp_path: Path) -> Site:
    index = new_index(tmp_path, "template.db")
    index.close()
    target = SourceSpec(TARGET, "federator.testing:CONNECTOR", {})
    return Site(tmp_path, target, "s3://bucket", template=tmp_path / "template.db")


def test_every_kind_of_change_that_was_applied(location: Site) -> None:
    """Declared, updated, renamed, recreated, adopted, deregistered; namespaces made and dropped: through the executor."""
    world = location.world("w", *SUBJECTS)
    _work(world, Orders())
    with world.index() as index:
        seal_pending(index)
        expected, sealed = ledger(index), events(index)
    assert len([event for event in sealed if event["kind"] == "write" and event["detail"]["state"] == "done"]) >= 12
    assert len(expected) >= 7
    assert {key[3].split("_")[-1] for key in expected} >= {"s", "fresh", "s$new", "s$again", "s$theirs"}
    assert replay_ledger(sealed) == expected
    # It is the events that tell: without one of them it is another ledger.
    last = max(number for number, event in enumerate(sealed) if event["kind"] == "write" and event["detail"]["entry"])
    assert replay_ledger([*sealed[:last], *sealed[last + 1 :]]) != expected


def write(action: str, target: str, *, mirror: str = "m", state: str = "done", **more: Any) -> Mapping[str, Any]:
    change = {"action": action, "target_source": more.get("source", "b"), "target_path": target}
    gone = action in ("deregister_table", "drop_namespace") or state != "done"
    entry = {
        "mirror": mirror, "origin_source": "a", "origin_path": target, "target_source": change["target_source"],
        "target_path": target, "is_table": 0 if "namespace" in action else 1, "native_id": "1",
    }  # fmt: skip
    detail = {"action": action, "mirror": mirror, "state": state, "code": more.get("code"), "change": change,
              "entry": None if gone else entry, "native_id": more.get("native_id")}  # fmt: skip
    return {"kind": "write", "detail": detail}


def paths(*audited: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return sorted((row["mirror"], row["target_source"], row["target_path"]) for row in replay_ledger(audited).values())


def test_what_failed_or_was_skipped_is_in_no_ledger() -> None:
    assert paths(write("declare_table", "x", state="failed"), write("declare_table", "y", state="skipped")) == []


def test_an_adoption_takes_over_from_every_mirror_and_a_declaration_from_its_own() -> None:
    both = (write("declare_table", "x"), write("declare_table", "x", mirror="n"))
    assert paths(*both) == [("m", "b", "x"), ("n", "b", "x")]
    assert paths(*both, write("adopt", "x", mirror="o")) == [("o", "b", "x")]
    assert paths(*both, write("deregister_table", "x")) == [("n", "b", "x")]


def test_a_namespace_and_a_table_of_one_name_are_two() -> None:
    assert len(paths(write("create_namespace", "x"), write("declare_table", "x"))) == 2
    assert len(paths(write("create_namespace", "x"), write("declare_table", "x"), write("drop_namespace", "x"))) == 1


def test_a_mirror_that_was_pointed_elsewhere_keeps_one_entry() -> None:
    assert paths(write("declare_table", "x"), write("declare_table", "x", source="c")) == [("m", "c", "x")]


def test_a_table_that_was_restored_has_its_new_identity() -> None:
    restored = write("recreate_table", "x", state="failed", code="restored", native_id="2")
    (row,) = replay_ledger([write("declare_table", "x"), restored]).values()
    assert row["native_id"] == "2"


def test_a_rebuilt_entry_counts() -> None:
    row = {"mirror": "m", "origin_source": "a", "origin_path": "x", "target_source": "b", "target_path": "x", "is_table": 1}
    rebuilt = {"kind": "ledger_rebuilt", "detail": {"why": "marked", **row}}
    assert list(replay_ledger([write("declare_table", "x", mirror="n"), rebuilt]).values()) == [row]
