"""Filters, comparisons and marked rows: what narrows a list to the few rows that matter."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from playwright.sync_api import Page, Route, expect

from federator import audit
from federator.apply.plan_decisions import decide_plan
from federator.model.audit_kinds import AuditKind
from federator.model.drift import Drift, DriftKind
from federator.store import audit_log, plans, requests
from federator.store import tables as t
from tests.fixtures.index_content import fill, table
from tests.web.conftest import Service, insert_drift

OpenPage = Callable[[str], Page]


def test_the_audit_log_is_narrowed_and_the_address_keeps_it(open_page: OpenPage, service: Service) -> None:
    decide_plan(service.index, service.plan, "approved", actor="ann", comment="yes")
    decide_plan(service.index, service.plan, "rejected", actor="ben", comment="no", overruled=None)
    page = open_page("audit")
    rows = page.get_by_role("table", name="Audit events").locator("tbody > tr")
    expect(rows.filter(has_text="plan approved")).to_have_count(1)
    offered = page.get_by_label("Kind").locator("option").evaluate_all("options => options.map(each => each.value)")
    assert set(offered) == {"", *AuditKind}
    page.get_by_label("Kind").select_option("plan_rejected")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("ben")
    # A subject is typed before and after the answer.
    held: list[Route] = []
    page.route(re.compile(r"/audit\?.*since="), lambda route: held.append(route) if not held else route.continue_())
    with page.expect_request(re.compile(r"/audit\?.*since=")):
        page.get_by_label("Sealed in").select_option("the last hour")
    expect(page).to_have_url(re.compile(r"kind=plan_rejected&hours=1$"))
    subject = page.get_by_label("Subject")
    subject.press_sequentially("oth")
    rows.evaluate("row => row.dataset.before = 'the answer'")
    held[0].continue_()
    expect(page.locator("[data-before]")).to_have_count(0)
    page.keyboard.type("er")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("No event matches")
    expect(subject).to_have_value("other")
    page.get_by_role("link", name="Clear the filter").click()
    expect(rows.filter(has_text="plan approved")).to_have_count(1)


def test_an_event_can_be_read_at_each_width(open_page: OpenPage, service: Service) -> None:
    with service.index.write() as connection:
        detail = {"action": "deregister_table", "state": "done", "target": "s3://lake/" + "long/" * 40}
        audit_log.append_event(
            connection,
            AuditKind.WRITE,
            actor="root",
            run_id="1a21af01623-08494288",
            subject="copy$sales$archive",
            detail=detail,
        )
    audit.seal_pending(service.index)
    for width, room in ((1200, 500), (390, 300)):
        page = open_page("audit?kind=write")
        page.set_viewport_size({"width": width, "height": 800})
        row = page.get_by_role("table", name="Audit events").locator("tbody > tr")
        row.get_by_text("event", exact=True).click()
        event = row.locator("pre")
        assert event.evaluate("event => event.clientWidth") > room
        assert event.evaluate("event => event.scrollWidth <= event.clientWidth")
        assert page.locator(".scroll").evaluate("table => table.scrollWidth <= table.clientWidth")
        expect(
            row.get_by_text("deregister table")
        ).to_be_in_viewport()  # the row's own line is above the event, not at its middle


def test_audit_events_show_what_was_done_and_how_it_ended(open_page: OpenPage, service: Service) -> None:
    detail = {"action": "declare_table", "state": "failed", "message": "copy did not respond"}
    with service.index.write() as connection:
        audit_log.append_event(connection, AuditKind.WRITE, actor="ann", run_id="r", subject="copy$sales$new", detail=detail)
    audit.seal_pending(service.index)
    row = open_page("audit?kind=write").get_by_role("table", name="Audit events").locator("tbody > tr")
    expect(row).to_contain_text("declare table failed")
    expect(row.locator("pre")).to_be_hidden()


def test_changes_are_narrowed_by_source_kind_and_path(open_page: OpenPage, service: Service) -> None:
    fill(service.index, "lake", table("lake", "sales", "late"), table("lake", "sales", "orders", owner="eve"))
    fill(service.index, "copy", table("copy", "sales", "late"))
    page = open_page("changes?from=-1h")
    changes = page.get_by_role("list", name="Changes")
    late = changes.locator("> li").filter(has=page.get_by_role("link", name="late"))
    # By namespace: what is in one stands below its name.
    expect(late.filter(has=page.get_by_role("heading", name="copy › sales"))).to_have_count(1)
    page.get_by_label("Source", exact=True).select_option("lake")
    expect(late.filter(has_text="copy › sales")).to_have_count(0)
    expect(late.filter(has_text="lake › sales")).to_have_count(1)
    below = page.get_by_label("At or below")
    below.fill("lake$sales$orders")
    below.press("Enter")
    expect(changes.get_by_role("link")).to_have_text(["orders"])
    page.get_by_role("group", name="Kind").get_by_role("button", name="removed").click()
    expect(page.locator("main")).to_contain_text("No difference matches")


def test_names_that_differ_only_in_case_are_marked(open_page: OpenPage, service: Service) -> None:
    with service.index.write() as connection:
        drift = Drift(
            DriftKind.NAME_CLASH, "lake", "lake$sales$events_000", "lake$sales$events_001", "2 names that differ in case"
        )
        insert_drift(connection, drift)
    page = open_page("t/lake%24sales?kind=namespace")
    marked = page.get_by_role("table", name="Contents").get_by_role("row").filter(has_text="name clash")
    expect(marked.get_by_role("link")).to_have_text(["events_000", "events_001"])


def test_datasets_are_narrowed_to_a_source_and_to_several_declarations(open_page: OpenPage, service: Service) -> None:
    page = open_page("datasets")
    page.get_by_label("Declared in").select_option("copy")
    rows = page.get_by_role("table", name="Datasets").locator("tbody > tr")
    expect(rows).to_have_count(2)
    page.goto("/ui/")
    figure = page.locator(".figures > div").filter(has_text="Declared more than once")
    expect(figure).to_contain_text("1")
    figure.get_by_role("link").click()
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("s3://lake/sales/orders.lance")
    expect(page.get_by_role("button", name="declared more than once")).to_have_attribute("aria-pressed", "true")


def test_declarations_that_disagree_stand_side_by_side(open_page: OpenPage, service: Service) -> None:
    page = open_page("datasets/s3%3A%2F%2Flake%2Fsales%2Forders.lance")
    compared = page.get_by_role("table", name="Declarations side by side")
    expect(compared.get_by_role("columnheader")).to_have_text(["Field", "orderscopy › sales", "orderslake › sales"])
    expect(compared.get_by_role("row").filter(has_text="Property team").get_by_role("cell")).to_have_text(
        ["Property team", "web", "ops"]
    )
    expect(compared.get_by_role("row").filter(has_text="Owner")).to_have_count(0)
    panel = page.get_by_role("region", name="Side by side")
    panel.locator("summary").click()
    expect(
        panel.get_by_role("table", name="Fields with one value").get_by_role("row").filter(has_text="Owner")
    ).to_contain_text("ann")


def test_a_plan_says_whether_its_preconditions_still_hold(open_page: OpenPage, service: Service) -> None:
    page = open_page(f"plans/{service.plan}")
    panel = page.get_by_role("region", name="Preconditions")
    expect(panel).to_contain_text("at revision 2, planned from 1")  # lake
    expect(panel).to_contain_text("at revision 1, as planned")  # copy
    expect(panel).to_contain_text("1 removal: the listing of the origin was complete")
    expect(panel).to_contain_text("no data is deleted")


def test_an_outdated_plan_leads_to_the_newest_one(open_page: OpenPage, service: Service) -> None:
    with service.index.write() as connection:
        content = plans.get_plan(connection, service.plan).content
        body = json.dumps({**content, "changes": [], "held": []})
        plans.save_plan(connection, digest="e" * 64, mirror="nightly", run_id="r", state="ready", body=body, guarded=None)
        connection.execute(t.plan.update().where(t.plan.c.digest == service.plan).values(state="outdated"))
    page = open_page(f"plans/{service.plan}")
    note = page.locator("main > .note")
    expect(note).to_contain_text("no changes")
    note.get_by_role("link", name="e" * 12).click()
    expect(page.locator("main .title")).to_contain_text("no changes")
    expect(page.locator("main")).to_contain_text("e" * 12)


def test_marked_orphans_are_declared_and_marked_drift_is_planned_together(open_page: OpenPage, service: Service) -> None:
    with service.index.write() as connection:
        for name in ("a", "b"):
            insert_drift(connection, Drift(DriftKind.ORPHAN, "", f"s3://lake/{name}.lance", "lake", "declared by no catalog"))
        insert_drift(connection, Drift(DriftKind.PROPERTIES_DIFFER, "copy", "copy$sales$parted", "lake$sales$parted", "team"))
    page = open_page("drift?kind=properties_differ")
    expect(page.get_by_role("table", name="Drift").locator("tbody > tr")).to_have_count(2)
    for key in ("j", "x", "j", "x", "."):
        page.keyboard.press(key)
    page.get_by_role("dialog").get_by_role("button", name="Plan nightly (2 rows)").click()
    expect(page.locator("#planned")).to_contain_text("It starts when the worker is free")
    with service.index.read() as connection:
        (queued,) = requests.list_queued(connection, requests.RUN_KINDS)
    assert (queued.kind, queued.argument) == ("plan", {"mirrors": ["nightly"]})
    page.goto(page.url.replace("properties_differ", "orphan"))
    expect(page.get_by_role("table", name="Drift").locator("tbody > tr")).to_have_count(2)
    for key in ("j", "x", "j", "x", "."):
        page.keyboard.press(key)
    page.get_by_role("dialog").get_by_role("button", name="Declare 2 tables").click()
    expect(page.get_by_role("region", name="Locations")).to_contain_text("s3://lake/b.lance")
    with page.expect_request("**/api/v1/declarations") as sent:
        page.get_by_role("button", name="Plan the declaration").click()
    assert json.loads(sent.value.post_data or "")["places"] == ["s3://lake/a.lance", "s3://lake/b.lance"]
