"""What a data engineer does with the page: compares two moments, makes plans, exports the audit log, and is called at night."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from federator.apply.plan_decisions import decide_plan
from federator.store import plans, requests, revisions, runs
from tests.fixtures.index_content import fill, table
from tests.web.conftest import Service

OpenPage = Callable[[str], Page]


def _crawl(service: Service, *tables: str) -> str:
    """A crawl that finds tables of the source lake; returns its id."""
    run = runs.insert_run(service.index, "crawl", trigger="schedule", actor="worker")
    fill(service.index, "lake", *(table("lake", "sales", name) for name in tables), run=run.id)
    runs.finish_run(service.index, run, "ok", summary={})
    return run.id


def test_two_handles_on_the_line_of_crawls_select_the_compared_moments(open_page: OpenPage, service: Service) -> None:
    first, second, third = _crawl(service, "first"), _crawl(service, "second"), _crawl(service, "third")
    page = open_page(f"changes?from={first}&to={second}")
    changes = page.get_by_role("list", name="Changes").get_by_role("link")
    expect(changes).to_have_text(["lake$sales$second"])
    end = page.get_by_role("slider", name="To")
    expect(end).to_have_value("1")
    end.focus()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile(f"from={first}&to={third}$"))
    expect(changes).to_have_text(["lake$sales$second", "lake$sales$third"])
    beginning = page.get_by_role("slider", name="From")
    beginning.focus()
    page.keyboard.press("ArrowRight")
    expect(changes).to_have_text(["lake$sales$third"])
    page.get_by_role("slider", name="To").focus()
    page.keyboard.press("Home")
    # The beginning gives way: it stays before the end.
    expect(page.get_by_role("slider", name="From")).to_have_value("0")
    expect(page.get_by_role("slider", name="To")).to_have_value("1")
    page.go_back()
    expect(changes).to_have_text(["lake$sales$third"])


def test_a_plan_is_made_from_drift_by_the_mirror_between_its_sources(open_page: OpenPage, service: Service) -> None:
    page = open_page("drift")
    page.get_by_role("table", name="Drift").get_by_role("button", name="Plan nightly").click()
    line = page.locator("#planned")
    expect(line).to_contain_text("It starts when the worker is free")
    (queued,) = _queued(service)
    assert (queued.kind, queued.argument) == ("plan", {"mirrors": ["nightly"]})
    with service.index.write() as connection:
        stored = plans.get_plan(connection, service.plan)
        plans.save_plan(
            connection, digest="e" * 64, mirror="nightly", run_id=service.run.id, state="ready", body=stored.body, guarded=None
        )
        requests.set_request_state(connection, queued.id, requests.DONE, run_id=service.run.id)
    runs.finish_run(service.index, service.run, "ok", summary={})
    line.get_by_role("link", name="e" * 12).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Plan for nightly")


def _queued(service: Service) -> list[requests.Request]:
    with service.index.read() as connection:
        return list(requests.list_queued(connection, requests.RUN_KINDS))


def test_mirrors_are_a_graph_of_catalogs_with_health_and_state(open_page: OpenPage) -> None:
    page = open_page("mirrors")
    graph = page.get_by_role("region", name="Catalogs")
    expect(graph).to_contain_text("1 mirror between 2 catalogs")
    origin = graph.get_by_role("listitem").first
    expect(origin.get_by_role("link", name="lake")).to_contain_text("partial")
    expect(origin.get_by_role("listitem").get_by_role("link", name="nightly")).to_be_visible()
    expect(origin.get_by_role("listitem")).to_contain_text("held")
    origin.get_by_role("listitem").get_by_role("link", name="copy").click()
    expect(page.get_by_role("heading", level=1, name="copy")).to_be_visible()


def test_filtered_audit_events_are_saved_as_json_lines_and_as_csv(
    open_page: OpenPage, service: Service, tmp_path: Path
) -> None:
    decide_plan(service.index, service.plan, "approved", actor="ann", comment="=HYPERLINK(1)")
    decide_plan(service.index, service.plan, "rejected", actor="=ben", comment='not "now"')
    page = open_page("audit")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export JSONL").click()
    saved.value.save_as(tmp_path / "audit.jsonl")
    events = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text("utf-8").splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [event["previous"] for event in events[1:]] == [event["digest"] for event in events[:-1]]
    page = open_page("audit?kind=plan_rejected")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export CSV").click()
    saved.value.save_as(tmp_path / "audit.csv")
    (row,) = csv.DictReader((tmp_path / "audit.csv").read_text("utf-8").splitlines())
    assert (row["kind"], row["actor"]) == ("plan_rejected", "'=ben")
    assert json.loads(row["detail"])["comment"] == 'not "now"'


def test_an_engineer_on_call_finds_and_settles_what_happened_at_night(open_page: OpenPage, service: Service) -> None:
    """A catalog went away, a plan is held, a table is broken. Each step uses only what the page shows; it starts at its first view."""
    with service.index.write() as connection:
        values = {"state": "failed", "message": "thrift://lake:9083: connection refused"}
        revisions.update_source(connection, "lake", values)
    page = open_page("")
    attention = page.get_by_role("region", name="Needs attention")
    expect(attention.get_by_role("listitem")).to_contain_text([
        "Source lake could not be read", "Plan of nightly is held", "1 table is missing",
    ])  # fmt: skip

    # The catalog: why, what that means, and what was tried.
    attention.get_by_role("listitem").filter(has_text="Source lake").get_by_role("link", name="Open").click()
    expect(page.locator("main")).to_contain_text("connection refused")
    expect(page.locator("main")).to_contain_text("Nothing is treated as absent because of that.")
    page.get_by_role("button", name="Crawl", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Crawl requested")
    page.go_back()

    # The plan: what holds it, what it would remove, and a decision with a reason.
    attention.get_by_role("listitem").filter(has_text="Plan of nightly").get_by_role("link", name="Review").click()
    expect(page.get_by_role("img", name="4 of 9, 44 %; the limit is 20 %")).to_be_visible()
    expect(page.get_by_role("region", name="Changes")).to_contain_text("gone at the origin")
    page.get_by_label("Comment, kept in the audit log").fill("lake was away tonight; looked at again tomorrow")
    page.get_by_role("button", name="Reject").click()
    expect(page.locator("#announcer")).to_have_text("Rejected")
    page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="Overview").click()

    # The table: which, where, and why.
    expect(attention).not_to_contain_text("Plan of nightly")
    attention.get_by_role("listitem").filter(has_text="1 table is missing").get_by_role("link", name="See all").click()
    page.get_by_role("list", name="Tables").get_by_role("link", name="parted").click()
    expect(page.locator("main")).to_contain_text("The location is missing. no manifest")
    expect(page.locator("main")).to_contain_text("s3://other/parted")

    assert [request.argument for request in _queued(service)] == [{"sources": ["lake"]}]
    with service.index.read() as connection:
        assert plans.get_plan(connection, service.plan).state == "rejected"
