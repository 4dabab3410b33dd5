"""What a data engineer does with the page: compares two moments, makes plans, exports the audit log, and is called at night."""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, Route, expect

from federator.apply.plan_decisions import decide_plan
from federator.store import plans, requests, revisions, run_stages, runs, verifications
from federator.store import tables as t
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
    expect(changes).to_have_text(["second"])
    end = page.get_by_role("slider", name="To")
    expect(end).to_have_value("1")
    end.focus()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile(f"from={first}&to={third}$"))
    expect(changes).to_have_text(["second", "third"])
    beginning = page.get_by_role("slider", name="From")
    beginning.focus()
    page.keyboard.press("ArrowRight")
    expect(changes).to_have_text(["third"])
    page.get_by_role("slider", name="To").focus()
    page.keyboard.press("Home")
    # The beginning gives way: it stays before the end.
    expect(page.get_by_role("slider", name="From")).to_have_value("0")
    expect(page.get_by_role("slider", name="To")).to_have_value("1")
    page.go_back()
    expect(changes).to_have_text(["third"])


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
    # The target was read completely, and one of its tables is missing: neither it nor its mirror is green.
    target = origin.get_by_role("listitem").get_by_role("link", name="copy")
    expect(target).to_contain_text("fresh, 1 not well")
    expect(page.locator("main .st.ok")).to_have_count(0)
    target.click()
    expect(page.get_by_role("heading", level=1, name="copy")).to_be_visible()


def test_a_mirror_whose_plan_was_rejected_is_not_in_sync(open_page: OpenPage, service: Service) -> None:
    decide_plan(service.index, service.plan, "rejected", actor="ben", comment="no")
    page = open_page("mirrors")
    expect(page.get_by_role("table", name="Mirrors").locator("tbody tr")).to_contain_text("plan rejected")
    expect(page.locator("main .st.ok")).to_have_count(0)


def test_filtered_audit_events_are_saved_as_json_lines_and_as_csv(
    open_page: OpenPage, service: Service, tmp_path: Path
) -> None:
    decide_plan(service.index, service.plan, "approved", actor="ann", comment="=HYPERLINK(1)")
    decide_plan(service.index, service.plan, "rejected", actor="=ben", comment='not "now"', overruled=None)
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
        "Source lake could not be read", "1 table is missing", "Plan of nightly is held",
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
    # Whoever approves removals knows that the origin cannot be read now.
    expect(page.locator("main > .note.bad")).to_contain_text("lake could not be read: thrift://lake:9083: connection refused")
    buttons = page.get_by_role("button", name=re.compile("^(Approve only|Reject)$"))
    left, right = buttons.evaluate_all("buttons => buttons.map(button => button.getBoundingClientRect().y)")
    assert left == right
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


def test_a_held_plan_says_why_before_it_is_opened(open_page: OpenPage) -> None:
    reason = "4 of 9 tables removed or moved within 24 h"
    page = open_page("")
    row = page.get_by_role("region", name="Needs attention").get_by_role("listitem").filter(has_text="Plan of nightly")
    expect(row).to_contain_text(f"deregister 1 table, declare 1 table: {reason}")
    page = open_page("plans")
    expect(page.get_by_role("table", name="Held plans")).to_contain_text(f"max_delete_percent: {reason}")
    expect(page.get_by_role("table", name="Newest plans")).to_contain_text("deregister table: 1")
    expect(page.get_by_text(reason)).to_have_count(1)


def test_the_plans_of_a_mirror_fit_beside_its_rule(open_page: OpenPage) -> None:
    page = open_page("mirrors/nightly")
    page.set_viewport_size({"width": 1280, "height": 800})
    plans_ = page.get_by_role("group", name="Plans of the mirror, scrolls sideways")
    expect(plans_.get_by_role("columnheader", name="Made")).to_be_visible()
    expect(plans_.get_by_role("columnheader", name="Mirror")).to_have_count(0)
    assert plans_.evaluate("each => each.scrollWidth - each.clientWidth") <= 0
    # Numbers of the rule have their units.
    rule = page.get_by_role("region", name="Rule")
    for text in (
        "min miss interval10 min",
        "max origin age2 s",
        "max delete percent20 %",
        "max changes10,000",
        "guard window1 d",
    ):
        expect(rule).to_contain_text(text)


def test_a_recent_change_has_its_whole_name_and_leads_to_what_it_is_about(open_page: OpenPage, service: Service) -> None:
    """Ids that were cut in the middle looked all alike, and a difference of what is stored led nowhere."""
    location, name = "s3://lake/sales/orders.lance", "returns_of_the_last_quarter"
    with service.index.write() as connection:
        earlier = time.time() - 2 * 86_400
        stored = t.dataset.update().where(t.dataset.c.canonical == location)
        connection.execute(stored.values(since=earlier, checked_at=earlier))
    _verify(service, location, "corrupt", message="no manifest of version 4")
    fill(service.index, "copy", table("copy", "sales", name))
    page = open_page("")
    page.set_viewport_size({"width": 1280, "height": 800})
    changes = page.get_by_role("region", name="Recent changes").get_by_role("listitem")
    added = changes.filter(has_text="copy › sales").filter(has_text=name)
    expect(added.get_by_role("link", name=name)).to_be_visible()
    assert added.locator("a").evaluate(
        "link => link.querySelector('[aria-hidden]') === null || link.scrollWidth <= link.clientWidth"
    )
    broken = changes.filter(has_text="state: valid → corrupt")
    expect(broken).to_contain_text(location)
    broken.get_by_role("link", name="orders.lance").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("orders.lance")
    expect(page.locator("main .sub")).to_contain_text(location)
    expect(page.locator("main")).to_contain_text("no manifest of version 4")


def test_the_failure_of_a_source_leads_to_its_runs(open_page: OpenPage, service: Service) -> None:
    page = open_page("")
    page.get_by_role("link", name="sources fresh").click()
    page.get_by_role("table", name="Sources").get_by_role("link", name="lake").click()
    latest = page.get_by_role("region", name="Latest runs")
    expect(latest).to_contain_text("No run yet")
    expect(page.locator(".tools > span.live")).to_have_text("Live")
    failed = runs.insert_run(service.index, "crawl", trigger="schedule", actor="schedule")
    run_stages.start_stage(service.index, failed.id, "crawl", "lake")
    error = "thrift://lake:9083 cannot be reached hint: check the uri"
    run_stages.finish_stage(service.index, failed.id, "crawl", "lake", state="failed", detail=error, calls=1, errors=1)
    runs.finish_run(service.index, failed, "failed", summary={})
    expect(latest).to_contain_text("crawl: failed by schedule")
    expect(latest).to_contain_text("thrift://lake:9083 cannot be reached. Check the uri")
    latest.get_by_role("link", name="All of its runs").click()
    row = page.get_by_role("table", name="Runs").locator("tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("lake")
    expect(row).to_contain_text("cannot be reached")
    row.get_by_role("link", name=failed.id).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(failed.id)


def test_what_is_snoozed_is_out_of_the_way_and_not_forgotten(open_page: OpenPage, service: Service) -> None:
    page = open_page("")
    attention = page.get_by_role("region", name="Needs attention")
    plan = attention.get_by_role("listitem").filter(has_text="Plan of nightly")
    badge = page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="Overview")
    expect(badge).to_contain_text("2")
    # By keyboard alone: open the menu of the row, go to its first choice, take it.
    plan.get_by_label("Snooze: Plan of nightly is held").press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="4 hours")).to_be_focused()
    # A run that starts while the view is read again has it read once more.
    expect(page.locator(".tools > span.live")).to_have_text("Live")
    held: list[Route] = []
    page.route("**/api/v1/overview/history", lambda route: held.append(route) if not held else route.continue_())
    with page.expect_request("**/api/v1/overview/history"):
        page.keyboard.press("Enter")
    runs.insert_run(service.index, "plan", trigger="request", actor="ben")
    expect(page.locator("#announcer")).to_contain_text("Snoozed until it changes, or until")
    expect(badge).to_contain_text("1")
    snoozed = page.locator("#snoozed")
    expect(snoozed.locator("summary").first).to_have_text("1 snoozed")
    expect(snoozed.locator("summary").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(snoozed.get_by_role("listitem")).to_contain_text("until it changes, or until")
    # The plan is held as before, also for the list of plans; and a reload keeps the snooze.
    page.reload()
    expect(snoozed.locator("summary").first).to_have_text("1 snoozed")
    expect(page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="Plans")).to_contain_text("1")
    snoozed.locator("summary").first.click()
    snoozed.get_by_role("button", name="Show again").click()
    expect(snoozed).to_have_count(0)
    expect(plan).to_be_visible()


def test_a_change_returns_what_was_snoozed(open_page: OpenPage, service: Service) -> None:
    page = open_page("")
    attention = page.get_by_role("region", name="Needs attention")
    row = attention.get_by_role("listitem").filter(has_text="is missing")
    row.get_by_label("Snooze:").click()
    row.get_by_role("button", name="1 week").click()
    expect(page.locator("#snoozed summary").first).to_have_text("1 snoozed")
    with service.index.write() as connection:
        connection.execute(
            t.dataset.update()
            .where(t.dataset.c.canonical == "s3://lake/sales/orders.lance")
            .values(state="missing", since=time.time(), checked_at=time.time())
        )
    page.reload()
    expect(attention.get_by_role("listitem").filter(has_text="3 tables are missing")).to_be_visible()
    expect(page.locator("#snoozed")).to_have_count(0)


def _tab_to(page: Page, row: str, name: str) -> None:
    """Press Tab until the control with a text or an id has the focus, in the row or panel with a text."""
    for _ in range(80):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "(() => { const e = document.activeElement, near = e.closest('li, tr, section');"
            " return [near ? near.textContent : '', e.textContent + e.id]; })()"
        )
        if row in focused[0] and name in focused[1]:
            return
    raise AssertionError(f"Tab does not reach {name} of {row}")


def _go_to_overview(page: Page) -> None:
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page.get_by_role("heading", level=1, name="Overview")).to_be_focused()


def test_the_night_is_understood_by_keyboard_alone(open_page: OpenPage, service: Service) -> None:
    with service.index.write() as connection:
        values = {"state": "failed", "message": "thrift://lake:9083: connection refused"}
        revisions.update_source(connection, "lake", values)
    page = open_page("")
    expect(page.get_by_role("region", name="Needs attention").get_by_role("listitem")).to_have_count(4)

    _tab_to(page, "Source lake", "Open")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="lake")).to_be_focused()
    expect(page.locator("main")).to_contain_text("connection refused")

    _go_to_overview(page)
    _tab_to(page, "Plan of nightly", "Review")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Plan for nightly")).to_be_focused()
    _tab_to(page, "Decision", "comment")
    page.keyboard.type("lake was away tonight")
    _tab_to(page, "Decision", "Reject")
    page.keyboard.press("Enter")
    expect(page.locator("#announcer")).to_have_text("Rejected")

    _go_to_overview(page)
    _tab_to(page, "1 table is missing", "See all")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Search")).to_be_focused()  # the overview names the table, too
    _tab_to(page, "parted", "parted")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("The location is missing. no manifest")
    with service.index.read() as connection:
        assert plans.get_plan(connection, service.plan).state == "rejected"


def test_a_change_while_a_view_is_loading_does_not_take_its_focus(open_page: OpenPage, service: Service) -> None:
    page = open_page("plans")
    expect(page.get_by_role("heading", level=1, name="Plans")).to_be_visible()
    held: list[Route] = []
    page.route("**/api/v1/overview/history", lambda route: held.append(route) if not held else route.continue_())
    with page.expect_request("**/api/v1/overview/history"):
        page.keyboard.press("g")
        page.keyboard.press("o")
    # The stream tells of a change before the view is there: it is read again.
    with page.expect_request("**/api/v1/overview/history"):
        runs.insert_run(service.index, "plan", trigger="request", actor="ben")
    expect(page.get_by_role("heading", level=1, name="Overview")).to_be_focused()


def _verify(service: Service, location: str, state: str, **values: object) -> None:
    row = {
        "canonical": location, "location": location, "state": state, "message": None, "version": None, "rows": None,
        "fragments": None, "schema": None, "checked_at": time.time(), "checked_through": "lake", "access": "",
    }  # fmt: skip
    with service.index.write() as connection:
        verifications.save_verifications(connection, [{**row, **values}])


def test_a_broken_table_says_since_when_and_its_last_valid_version(open_page: OpenPage, service: Service) -> None:
    _verify(service, "s3://lake/sales/orders.lance", "corrupt", message="no manifest of version 4")
    page = open_page("t/lake%24sales%24orders")
    banner = page.locator("main > .note.bad")
    expect(banner).to_contain_text("The location is corrupt. no manifest of version 4")
    expect(banner).to_contain_text(
        re.compile(r"This state was first seen \d+ s ago. Last valid \d+ (s|min|h) ago: version 3, 12,345 rows.")
    )
    # The newest change comes first.
    latest = page.get_by_role("region", name="Latest changes").get_by_role("listitem")
    expect(latest.first).to_contain_text("verified: corrupt")
    page.get_by_role("tab", name="History").click()
    history = page.get_by_role("region", name="History").get_by_role("listitem")
    expect(history.first).to_contain_text("no manifest of version 4; last valid at")
    expect(history.last).to_contain_text("appeared")
    page.get_by_role("tab", name="Explain").click()
    expect(page.get_by_role("region", name="Explanation")).to_contain_text(
        re.compile(r"its location is corrupt since \S+; it was last valid at \S+, version 3 with 12,345 rows")
    )


def test_a_held_plan_shows_what_is_stored_where_it_deregisters(open_page: OpenPage, service: Service) -> None:
    _verify(service, "s3://lake/gone", "valid", version=41, rows=9_000)
    page = open_page(f"plans/{service.plan}")
    changes = page.get_by_role("region", name="Changes", exact=True).get_by_role("listitem")
    expect(changes.filter(has_text="gone at the origin")).to_contain_text("valid version 41, 9,000 rows, verified")
    expect(changes.filter(has_text="new at the origin")).to_contain_text("never verified")
