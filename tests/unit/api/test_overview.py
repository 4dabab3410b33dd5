"""The overview: what needs attention, on both databases."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from sqlalchemy import select

from federator.api.app import create_app
from federator.model import ROOT, Coverage, failed_evidence
from federator.model.scopes import Scopes
from federator.settings import parse_settings
from federator.store import Index, coverage, revisions, runs, snoozes, verifications
from federator.store import tables as t
from federator.store.leases import acquire_lease
from federator.worker.triggers import overdue_since
from tests.fixtures.index_content import fill, namespace, table
from tests.unit.api import worlds
from tests.unit.api.conftest import Api

_HOUR = 3600.0


def _verify(index: Index, **states: str) -> None:
    now = time.time()
    rows = [
        {
            "canonical": f"s3://lake/sales/{name}.lance", "location": f"s3://lake/sales/{name}.lance", "state": state, "message": None,
            "version": 1, "rows": 1, "fragments": 1, "schema": None, "checked_at": now, "checked_through": "lake", "access": "",
        }
        for name, state in states.items()
    ]  # fmt: skip
    with index.write() as connection:
        verifications.save_verifications(connection, rows)


def _fill(index: Index) -> None:
    fill(index, "lake", namespace("lake", "sales"), *(table("lake", "sales", f"t{number}") for number in range(4)))
    fill(index, "copy", namespace("copy", "sales"), table("copy", "sales", "t0", location="s3://lake/sales/t0.lance"))
    _verify(index, t0="valid", t1="missing", t2="corrupt")
    with acquire_lease(index, "source:lake") as lease:
        draft, denied = revisions.begin_draft(index, lease, "lake", "run-2", 0.0), failed_evidence(15, "denied")
        with index.write() as connection:
            coverage.write_coverage(connection, draft, [Coverage("lake", ROOT), Coverage("lake", ("hr",), denied, denied)], {})
        values = {"state": "partial", "message": "hr: denied"}
        revisions.publish_draft(index, lease, draft, added=0, changed=0, removed=0, values=values)
    row = {"source": "copy", "other": "lake$sales$t0", "detail": "", "first_seen": 5.0, "last_seen": 6.0}
    with index.write() as connection:
        connection.execute(
            t.drift.insert(),
            [
                {**row, "kind": "location_differs", "subject": "copy$sales$t0", "severity": "high"},
                {**row, "kind": "properties_differ", "subject": "copy$sales$t0", "severity": "low"},
            ],
        )
        notification = {
            "id": "n", "channel": "ops", "grouped": "", "state": "dead", "severity": "error", "events": 1, "body": "{}",
            "created_at": 7.0, "due_at": 7.0, "attempts": 8, "error": "410",
        }  # fmt: skip
        connection.execute(t.notification.insert(), [notification])


def api_over(index: Index, folder: Path, **sources: Any) -> Api:
    memory = {"impl": "federator.testing:CONNECTOR"}
    raw = {
        "instance": {"id": "test"},
        "index": {"url": index.engine.url.render_as_string(hide_password=False)},
        "sources": {name: {**memory, "store": f"overview-{name}", **sources.get(name, {})} for name in ("lake", "copy", "new")},
    }
    app = create_app(parse_settings(raw, folder / "federator.toml"))
    app.state.index.close()
    app.state.index = index
    return Api(app)


def test_everything_that_needs_attention_is_listed_the_worst_first(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    overview = api_over(either_index, tmp_path).json("/api/v1/overview")
    assert [(item["kind"], item["state"], item["count"]) for item in overview["attention"]] == [
        ("drift", "high", 1), ("tables", "corrupt", 1), ("tables", "missing", 1), ("notifications", "dead", 1),
        ("source", "partial", 1), ("drift", "low", 1), ("source", "never", 1),
    ]  # fmt: skip
    assert (overview["tables"], overview["drift"]) == (5, {"high": 1, "low": 1})
    assert (overview["datasets"], overview["datasets_with_several_declarations"]) == (4, 1)
    assert overview["states"] == {"corrupt": 1, "missing": 1, "unverified": 1, "valid": 2}
    states = {source["name"]: source["states"] for source in overview["sources"]}
    assert states == {"copy": {"valid": 1}, "lake": {"corrupt": 1, "missing": 1, "unverified": 1, "valid": 1}, "new": {}}
    (partial,) = [item for item in overview["attention"] if item["state"] == "partial"]
    assert (partial["subject"], partial["detail"]) == ("lake", "hr: denied")


def test_a_source_in_part_is_partial_since_this_part_is(either_index: Index, tmp_path: Path) -> None:
    """Runs before the last crawl left the source partial for what is hidden: their times are not shown."""
    _fill(either_index)
    first = {"id": "00-first", "kind": "crawl", "state": "partial", "trigger": "cli", "actor": "a", "started_at": 3.0}
    with either_index.write() as connection:
        connection.execute(t.run.insert().values(first))
        connection.execute(t.run_source.insert().values(run_id=first["id"], source="lake", state="partial"))
    api = api_over(either_index, tmp_path)
    ends = {}
    for name, scopes in (("whole", ["lake"]), ("part", ["lake$hr"])):
        caller = worlds.as_caller(api.app, either_index, "viewer", Scopes.parse(scopes), name)
        (item,) = [each for each in caller.json("/api/v1/overview")["attention"] if each["state"] == "partial"]
        ends[name] = item["since"]
    assert ends["whole"] == "1970-01-01T00:00:03Z"
    assert ends["part"] == api.json("/api/v1/sources/lake")["freshness"]["crawled_at"]


def test_counts_are_those_of_the_scopes_and_of_the_newest_verification(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    api = api_over(either_index, tmp_path)
    part = worlds.as_caller(api.app, either_index, "viewer", Scopes.parse(["lake"]), "part")
    for _ in range(2):
        overviews = [caller.json("/api/v1/overview") for caller in (api, part)]
        assert [(each["datasets"], each["datasets_with_several_declarations"]) for each in overviews] == [(4, 1), (4, 0)]
    _verify(either_index, t1="valid")
    assert part.json("/api/v1/overview")["states"] == {"corrupt": 1, "unverified": 1, "valid": 2}


def test_a_draft_revision_is_not_counted(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    api = api_over(either_index, tmp_path)
    before = api.json("/api/v1/overview")["states"]
    with either_index.write() as connection:
        closed = t.record.update().where(t.record.c.source == "lake", t.record.c.name == "t1")
        revision = connection.execute(t.source.select().where(t.source.c.name == "lake")).mappings().one()["revision"]
        connection.execute(closed.values(valid_to=revision + 1))
    assert api.json("/api/v1/overview")["states"] == before
    with either_index.write() as connection:
        connection.execute(t.source.update().where(t.source.c.name == "lake").values(revision=revision + 1))
    assert api.json("/api/v1/overview")["states"] == {"corrupt": 1, "unverified": 1, "valid": 2}


def test_a_source_that_is_not_crawled_as_scheduled_is_overdue(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    api = api_over(either_index, tmp_path, copy={"schedule": "@every 15m"})
    with either_index.write() as connection:
        connection.execute(t.source.update().where(t.source.c.name == "copy").values(crawled_at=time.time() - _HOUR))
    (item,) = [each for each in api.json("/api/v1/overview")["attention"] if each["subject"] == "copy"]
    assert (item["kind"], item["state"]) == ("source", "overdue")


def test_a_source_has_the_job_that_crawls_it_for_those_who_see_all_of_it(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    api = api_over(either_index, tmp_path, lake={"schedule": "0 4 * * *"})
    (job,) = api.json("/api/v1/jobs")["jobs"]
    in_part = worlds.as_caller(api.app, either_index, "viewer", Scopes.parse(["lake$hr"]), "part")
    by_source = {source["name"]: source["job"] for source in api.json("/api/v1/overview")["sources"]}
    assert by_source == {"copy": None, "lake": job, "new": None}
    assert [source["job"] for source in in_part.json("/api/v1/overview")["sources"]] == [None]


def test_active_runs_are_counted(either_index: Index, tmp_path: Path) -> None:
    api = api_over(either_index, tmp_path)
    run = runs.insert_run(either_index, "crawl", trigger="request", actor="ann")
    assert api.json("/api/v1/overview")["active_runs"] == 1
    runs.finish_run(either_index, run, "ok", summary={})
    assert api.json("/api/v1/overview")["active_runs"] == 0


@pytest.mark.parametrize(
    ("schedule", "last_at", "now", "due"),
    [
        ("@every 15m", 0.0, 1800.0, None), ("@every 15m", 0.0, 1801.0, 1800.0), ("0 * * * *", 60.0, 2 * _HOUR, None),
        ("0 * * * *", 60.0, 2 * _HOUR + 1, 2 * _HOUR), ("0 0 * * *", 0.0, 24 * _HOUR, None),
    ],
)  # fmt: skip
def test_a_crawl_is_overdue_from_the_second_missed_start(schedule: str, last_at: float, now: float, due: float | None) -> None:
    assert overdue_since(schedule, last_at, now) == due


def _snooze(api: Api, item: dict[str, Any], **changed: Any) -> httpx.Response:
    return api.ask(
        "PUT", f"/api/v1/attention/{quote(item['key'], safe='')}", json={"digest": item["digest"], "hours": 24, **changed}
    )


def _attention(api: Api) -> dict[str, dict[str, Any]]:
    return {item["key"]: item for item in api.json("/api/v1/overview")["attention"]}


def test_what_is_snoozed_stays_in_the_list_and_returns_when_it_changes(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    api = api_over(either_index, tmp_path)
    before = _attention(api)
    assert {item["snoozed_until"] for item in before.values()} == {None}
    snoozed = _snooze(api, before["tables:missing"])
    assert (snoozed.status_code, snoozed.json()["key"]) == (200, "tables:missing"), snoozed.text
    after = _attention(api)
    assert [key for key, item in after.items() if item["snoozed_until"]] == ["tables:missing"]
    assert list(after) == list(before)
    _verify(either_index, t3="missing")
    changed = _attention(api)["tables:missing"]
    assert (changed["count"], changed["snoozed_until"]) == (2, None)
    assert changed["digest"] != before["tables:missing"]["digest"]


def test_a_snooze_ends_if_one_table_replaces_another(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    api = api_over(either_index, tmp_path)
    _snooze(api, _attention(api)["tables:missing"])
    _verify(either_index, t1="valid", t3="missing")
    item = _attention(api)["tables:missing"]
    assert (item["count"], item["snoozed_until"]) == (1, None)


def test_the_age_of_a_failure_is_that_of_the_first_one(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    started = {}
    for number, state in enumerate(("partial", "ok", "partial", "partial")):
        run = runs.insert_run(either_index, "crawl")
        runs.record_source_result(either_index, run, "lake", state=state)
        with either_index.write() as connection:
            # The ids begin with the time in milliseconds.
            names = {"id": f"0000000000{number}-x", "started_at": 10.0 + number}
            connection.execute(t.run.update().where(t.run.c.id == run.id).values(names))
            connection.execute(t.run_source.update().where(t.run_source.c.run_id == run.id).values(run_id=names["id"]))
        started[number] = names["started_at"]
    since = _attention(api_over(either_index, tmp_path))["source:lake:partial"]["since"]
    assert datetime.fromisoformat(since).timestamp() == started[2]


def test_what_has_changed_since_it_was_read_is_not_snoozed(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    api = api_over(either_index, tmp_path)
    item = _attention(api)["tables:missing"]
    _verify(either_index, t3="missing")
    assert _snooze(api, item).status_code == 409
    assert _attention(api)["tables:missing"]["snoozed_until"] is None
    assert _snooze(api, {"key": "tables:none", "digest": "x"}).status_code == 404


@pytest.mark.parametrize("hours", [0, -1, 721, 0.5, "1", True, None, [1]])
def test_a_snooze_has_an_end_in_whole_hours(either_index: Index, tmp_path: Path, hours: object) -> None:
    _fill(either_index)
    api = api_over(either_index, tmp_path)
    assert _snooze(api, _attention(api)["tables:missing"], hours=hours).status_code == 400


def test_a_snooze_that_has_ended_hides_nothing_and_is_deleted(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    api = api_over(either_index, tmp_path)
    item = _attention(api)["tables:missing"]
    snoozes.save_snooze(either_index, "api", item["key"], item["digest"], until=time.time() - 1, now=time.time() - 2)
    assert _attention(api)["tables:missing"]["snoozed_until"] is None
    _snooze(api, _attention(api)["tables:corrupt"])
    with either_index.read() as connection:
        assert connection.execute(select(t.snooze.c.key)).scalars().all() == ["tables:corrupt"]


def test_a_repeated_snooze_is_one_audit_event(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    api = api_over(either_index, tmp_path)
    item = _attention(api)["tables:missing"]
    first, again, longer = (_snooze(api, item, hours=hours).json()["snoozed_until"] for hours in (4, 4, 24))
    assert (again, longer > first) == (first, True)
    with either_index.read() as connection:
        kinds = (
            connection.execute(select(t.audit_event.c.kind).where(t.audit_event.c.subject == "tables:missing")).scalars().all()
        )
    assert kinds == ["attention_snoozed"] * 2


def test_a_principal_has_a_number_of_snoozes(either_index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fill(either_index)
    api = api_over(either_index, tmp_path)
    monkeypatch.setattr(snoozes, "MAX_SNOOZES", 1)
    snoozes.save_snooze(either_index, "another", "tables:missing", "x", until=time.time() + 9, now=time.time())
    items = _attention(api)
    assert _snooze(api, items["tables:missing"]).status_code == 200
    assert _snooze(api, items["tables:missing"], hours=100).status_code == 200
    refused = _snooze(api, items["tables:corrupt"])
    assert (refused.status_code, refused.json()["detail"]) == (409, "api has 1 snoozes, the largest number")
    assert api.ask("DELETE", "/api/v1/attention/tables%3Amissing").status_code == 200
    assert _snooze(api, items["tables:corrupt"]).status_code == 200


def test_a_snooze_is_of_one_principal_and_audited(either_index: Index, tmp_path: Path) -> None:
    _fill(either_index)
    api = api_over(either_index, tmp_path)
    item = _attention(api)["source:lake:partial"]
    snoozes.save_snooze(either_index, "token:other", item["key"], item["digest"], until=time.time() + 60, now=time.time())
    assert _attention(api)[item["key"]]["snoozed_until"] is None
    _snooze(api, item)
    ended = api.ask("DELETE", f"/api/v1/attention/{item['key']}")
    assert (ended.status_code, ended.json()["snoozed_until"]) == (200, None)
    with either_index.read() as connection:
        assert connection.execute(select(t.snooze.c.principal)).scalars().all() == ["token:other"]
    events = [(event["kind"], event["actor"], event["subject"]) for event in api.json("/api/v1/audit")["events"]]
    assert events[:3] == [
        ("snooze_ended", "api", item["key"]), ("attention_snoozed", "api", item["key"]),
        ("attention_snoozed", "token:other", item["key"]),
    ]  # fmt: skip
