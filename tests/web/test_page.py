"""The page in a real Chromium: displayed content and actions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, expect

from federator.model import TableRecord
from federator.model.drift import Drift, DriftKind
from federator.planning.changes import Action, Change, Refusal
from federator.planning.holds import Binds, Hold, LiftedBy
from federator.planning.plan import Plan
from federator.planning.reasons import Reason
from federator.planning.release import guarded_digest
from federator.store import plans, requests, runs
from federator.views.search import facets
from tests.fixtures.index_content import fill, record_change, table
from tests.web.conftest import Service, insert_drift

OpenPage = Callable[[str], Page]
_FOUND = TableRecord("lake", ("sales", "found"), "s3://lake/lost/orders.lance")
_DECLARATION = Change(Action.DECLARE_TABLE, "lake", "sales$found", "lake", "sales$found", "an orphan", after=_FOUND)
_DECLARED = json.dumps(Plan("declare:lake", "d", 1, 1, (_DECLARATION,)).to_json())


def test_the_tree_unfolds_by_keyboard_down_to_a_table(open_page: OpenPage) -> None:
    page = open_page("sources")
    tree = page.get_by_role("tree")
    expect(tree.get_by_role("treeitem", name="copy")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("t")
    for name in ("sales", "parted"):
        page.keyboard.press("ArrowRight")
        expect(tree.get_by_role("treeitem", name=name)).to_be_visible()
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="parted")).to_be_visible()
    expect(page.locator("main")).to_contain_text("s3://other/parted")
    expect(tree.get_by_role("treeitem", selected=True)).to_have_text("parted")
    expect(tree).to_be_focused()


def test_the_tree_stays_as_it_was_over_views_back_and_a_reload(open_page: OpenPage) -> None:
    page = open_page("t/lake%24sales%24events_040")
    tree = page.get_by_role("tree")
    chosen = tree.get_by_role("treeitem", name="events_040")
    expect(chosen).to_have_attribute("aria-selected", "true")
    page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="Runs").click()
    expect(page.get_by_role("heading", level=1, name="Runs")).to_be_visible()
    expect(chosen).to_be_in_viewport()
    page.go_back()
    expect(page.get_by_role("heading", level=1, name="events_040")).to_be_focused()
    expect(chosen).to_be_in_viewport()
    page.reload()
    expect(chosen).to_be_in_viewport()
    page.get_by_role("searchbox", name="Filter the tree").fill("parted")
    expect(tree.get_by_role("treeitem")).to_have_text(["copy2", "sales", "parted", "lake62", "sales62", "parted"])


def test_the_merged_tree_shows_declarations_and_conflicts(open_page: OpenPage) -> None:
    page = open_page("sources")
    tree = page.get_by_role("tree")
    page.get_by_role("button", name="Merged").click()
    tree.get_by_role("treeitem", name="sales").click()
    expect(tree.get_by_role("treeitem", name="events_000")).to_be_visible()
    tree.press("End")
    parted = tree.get_by_role("treeitem", name="parted")
    expect(parted.get_by_role("img", name="conflict: different locations")).to_be_visible()
    expect(tree.get_by_role("treeitem", name="orders")).to_contain_text("2 declarations")
    parted.click()
    tree.get_by_role("treeitem", name="copy$sales$parted").click()
    expect(page.locator("main")).to_contain_text("s3://other/parted")


def test_a_search_is_narrowed_by_its_facets_and_pages(open_page: OpenPage) -> None:
    page = open_page("search")
    box = page.get_by_role("searchbox", name="Search tables")
    expect(box).to_be_focused()
    box.fill("sales$*")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("64 tables")
    by_role = page.get_by_role("list", name="Tables").get_by_role("listitem")
    expect(by_role).to_have_count(50)
    page.get_by_role("button", name="Show more").click()
    expect(by_role).to_have_count(64)
    page.get_by_role("group", name="Owner").get_by_role("button", name="ann").click()
    expect(by_role).to_have_count(2)
    expect(by_role.filter(has_text="lake › sales")).to_contain_text("12,345 rows")
    page.get_by_role("group", name="Source").get_by_role("button", name="copy").click()
    expect(by_role).to_have_count(1)
    expect(by_role.get_by_role("link", name="orders")).to_have_attribute("href", "/ui/t/copy%24sales%24orders")
    page.get_by_role("group", name="Source").get_by_role("button", name="copy", pressed=True).click()
    expect(by_role).to_have_count(2)
    open_page("search?q=parted")
    expect(by_role).to_have_count(2)
    page.get_by_role("group", name="Owner").get_by_role("button", name='Joe "J" Doe').click()
    expect(by_role).to_have_count(1)
    open_page("search?q=nothing%20like%20it")
    expect(page.locator("main")).to_contain_text("No table matches")


def test_a_facet_shows_the_underscores_of_a_name(open_page: OpenPage) -> None:
    page = open_page("search?q=sales$*")
    value = page.get_by_role("group", name="Source").get_by_role("button").first.locator(".long")
    height, size = value.evaluate("node => [node.clientHeight, parseFloat(getComputedStyle(node).fontSize)]")
    assert height >= 1.3 * size  # what is below a line of the letters' own height is hidden


def test_results_follow_what_is_typed_and_a_link_keeps_them(open_page: OpenPage) -> None:
    page = open_page("search")
    box = page.get_by_role("searchbox", name="Search tables")
    box.press_sequentially("ann pri")
    by_role = page.get_by_role("list", name="Tables").get_by_role("listitem")
    expect(by_role).to_have_count(1)
    expect(box).to_be_focused()
    expect(page).to_have_url(re.compile(r"q=ann\+pri$"))
    # Why it was found, as text: the start of a column's name, and the owner.
    expect(by_role.locator("mark")).to_have_text(["pri", "ann"])
    box.fill("ordres -namespace:hr")
    expect(page.locator("main")).to_contain_text("No table has these words. The tables below have similar names.")
    expect(by_role).to_have_count(2)
    expect(by_role.first.locator("mark")).to_have_text(["orders"])
    page.get_by_role("link", name="orders -namespace:hr").click()
    expect(box).to_have_value("orders -namespace:hr")
    page.get_by_role("group", name="Source").get_by_role("button", name="lake").click(modifiers=["Alt"])
    expect(box).to_have_value('orders -namespace:hr -source:"lake"')
    expect(by_role).to_have_count(1)
    page.reload()
    expect(by_role).to_have_count(1)
    page.get_by_role("button", name='Remove -source:"lake"').click()
    expect(by_role).to_have_count(2)
    page.go_back()
    expect(by_role).to_have_count(1)
    box.press("Enter")
    expect(by_role.get_by_role("link")).to_be_focused()


def test_a_mirrors_mark_is_no_reason_where_something_else_matches(open_page: OpenPage, service: Service) -> None:
    mark = {"federator.origin": "lake$sales$zebra", "team": "zebra watch"}
    fill(service.index, "copy", table("copy", "sales", "zebra", properties=mark))
    page = open_page("search?q=zebra")
    found = page.get_by_role("list", name="Tables")
    expect(found).to_contain_text("zebra watch")
    expect(found).not_to_contain_text("federator.origin")
    page = open_page("search?q=property%3Afederator.origin")
    expect(found).to_contain_text("federator.origin")


def test_a_count_that_is_not_exact_is_shown_as_such(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facets, "MAX_COUNTED", 20)
    page = open_page("search?q=namespace%3Asales")
    expect(page.get_by_role("region", name="Tables")).to_contain_text("more than 60")
    expect(page.get_by_role("group", name="Owner").get_by_role("button", name="bob")).to_contain_text("≥ ")


def test_an_unknown_field_is_explained_beside_the_input(service: Service, browser: Browser) -> None:
    context = browser.new_context(base_url=service.url)
    page = context.new_page()
    page.goto("/ui/search?q=ownr%3Aann")
    box = page.get_by_role("searchbox", name="Search tables")
    expect(box).to_be_focused()
    expect(box).to_have_value("ownr:ann")
    expect(box).to_have_attribute("aria-invalid", "true")
    expect(box).to_have_accessible_description(
        re.compile("'ownr' is not a field of the search; did you mean .owner.*fields: name, ")
    )
    box.fill("owner:ann -name:parted")
    page.keyboard.press("Enter")
    expect(page.get_by_role("list", name="Tables").get_by_role("listitem")).to_have_count(2)
    expect(page.get_by_role("alert")).to_have_count(0)
    context.close()


def test_a_table_tells_all_that_is_known_of_it_and_no_secret(open_page: OpenPage) -> None:
    page = open_page("t/lake%24sales%24orders")
    expect(page.get_by_role("region", name="Declarations")).to_contain_text(
        "property:team: copy$sales$orders against lake$sales$orders"
    )
    expect(page.locator(".figures")).to_contain_text("12,345")
    expect(page.get_by_role("region", name="Drift", exact=True)).to_contain_text("properties differ")
    expect(page.get_by_role("table", name="Properties")).to_contain_text("(masked)")
    expect(page.locator("main")).to_contain_text("What was <b>sold</b>")
    assert "hunter2" not in page.content()
    page.get_by_role("tab", name="Explain").click()
    expect(page.get_by_role("region", name="Explanation")).to_contain_text("no mirror of this instance declared it")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("region", name="History")).to_contain_text("appeared")
    page.reload()
    expect(page.get_by_role("tab", name="History")).to_have_attribute("aria-selected", "true")
    page.get_by_role("tab", name="Overview").click()
    page.get_by_role("region", name="Declarations").get_by_role("link", name="copy$sales$orders").click()
    expect(page.get_by_role("heading", level=1, name="orders")).to_be_visible()
    expect(page.get_by_role("navigation", name="Breadcrumb")).to_contain_text("copysalesorders")


def test_a_run_is_followed_while_it_goes_on(open_page: OpenPage, service: Service) -> None:
    page = open_page(f"runs/{service.run.id}")
    queued = page.request.post("/api/v1/runs", data={"kind": "crawl", "sources": ["lake"]}).json()
    with service.index.write() as connection:
        requests.set_request_state(connection, queued["id"], requests.RUNNING, run_id=service.run.id)
    expect(page.locator("main .title")).to_contain_text("running")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    runs.set_progress(service.index, service.run, "lake: 7 of 9 shards")
    expect(page.locator("#run")).to_contain_text("lake: 7 of 9 shards", timeout=60_000)
    dialog = page.get_by_role("dialog", name="Cancel the crawl?")
    page.get_by_role("button", name="Cancel").click()
    expect(dialog).to_contain_text("It stops before its next write. What it has written stays")
    dialog.get_by_role("button", name="Let it run").click()
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Cancel").click()
    with page.expect_response("**/cancel") as canceled:
        dialog.get_by_role("button", name="Cancel the run").click()
    assert canceled.value.ok
    expect(page.locator("#announcer")).to_contain_text("Cancellation requested")
    runs.finish_run(service.index, service.run, "ok", summary={})
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden(timeout=60_000)
    expect(page.locator("#run")).not_to_contain_text("7 of 9")


@pytest.mark.parametrize(("button", "state"), [("Approve only", "approved"), ("Reject", "rejected")])
def test_a_held_plan_is_decided(open_page: OpenPage, service: Service, button: str, state: str) -> None:
    page = open_page("plans")
    page.get_by_role("table", name="Held plans").get_by_role("link").first.click()
    held = page.get_by_role("region", name="Held")
    expect(held).to_contain_text("Tables removed or moved within 24 h")
    expect(held).to_contain_text("4 of 9, 44 %; the limit is 20 % (max_delete_percent)")
    expect(held.get_by_text("4 of 9")).to_have_count(1)
    waiting, going = page.get_by_role("region", name="Changes").locator("li.delta").all()
    expect(waiting).to_contain_text("s3://lake/gone")
    expect(waiting).to_contain_text("waits: max delete percent")
    expect(going).to_contain_text("can be applied")
    with service.index.read() as connection:
        guarded = plans.get_plan(connection, service.plan).guarded
    page.get_by_role("button", name=button).click()
    comment = page.get_by_label("Comment, kept in the audit log")
    expect(page.locator("#announcer")).to_have_text("A decision about a held plan needs a comment")
    expect(comment).to_be_focused()  # a decision about a held plan is not sent without a comment
    comment.fill("agreed with <b>the</b> owner")
    with page.expect_request("**/approve" if state == "approved" else "**/reject") as decided:
        page.get_by_role("button", name=button).click()
    assert decided.value.headers["if-match"] == f'"{guarded}"'
    expect(page.get_by_role("status")).to_have_text(state.capitalize())
    expect(page.get_by_role("heading", level=1)).to_be_focused()  # the button is not there any more
    expect(page.get_by_role("region", name="Was held")).to_contain_text("4 of 9, 44 %")
    expect(page.get_by_role("region", name="Decision")).to_contain_text("agreed with <b>the</b> owner")
    with service.index.read() as connection:
        assert plans.get_plan(connection, service.plan).state == state
    page = open_page(f"audit?kind=plan_{state}")
    page.get_by_role("table", name="Audit events").get_by_text("event", exact=True).click()
    expect(page.get_by_role("table", name="Audit events")).to_contain_text('"comment": "agreed with <b>the</b> owner"')


def test_a_held_plan_shows_what_was_carried_out(open_page: OpenPage, service: Service) -> None:
    with service.index.read() as connection:
        plan = Plan.from_json(plans.get_plan(connection, service.plan).content)
    record_change(service.index, service.plan, plan.changes[1])
    page = open_page("plans")
    expect(page.get_by_role("table", name="Held plans")).to_contain_text("(1 change carried out)")
    page.get_by_role("table", name="Held plans").get_by_role("link").first.click()
    changes = page.get_by_role("region", name="Changes").locator("li.delta")
    expect(changes).to_have_count(2)
    waiting, made = changes.all()
    expect(waiting).to_contain_text("waits: max delete percent")
    expect(made).to_contain_text("carried out")
    expect(made).not_to_contain_text("can be applied")
    expect(page.get_by_role("button", name="Approve and apply (1 removal)")).to_be_visible()
    expect(page.get_by_role("button", name="Apply the others")).to_have_count(0)
    page = open_page("mirrors")
    expect(page.get_by_role("table", name="Mirrors")).to_contain_text("deregister table: 1")
    expect(page.get_by_role("table", name="Mirrors")).not_to_contain_text("declare table")


def test_a_plan_shows_what_each_guard_measured(open_page: OpenPage, service: Service) -> None:
    page = open_page(f"plans/{service.plan}")
    held = page.get_by_role("region", name="Held")
    expect(held.get_by_role("img", name="4 of 9, 44 %; the limit is 20 %")).to_be_visible()
    passed = page.get_by_role("region", name="Guards without objection")
    expect(passed.get_by_role("listitem")).to_have_count(3)
    expect(passed.get_by_role("img", name="1 of 12, 8 %; the limit is 20 %")).to_be_visible()
    expect(passed).to_contain_text("2; the limit is 10,000")


@pytest.mark.parametrize(("button", "waiting"), [("Approve and apply (1 removal)", 0), ("Apply the others", 1)])
def test_an_application_is_followed_to_its_result(open_page: OpenPage, service: Service, button: str, waiting: int) -> None:
    page = open_page(f"plans/{service.plan}")
    page.get_by_label("Comment, kept in the audit log").fill("checked")
    page.get_by_role("button", name=button).click()
    application = page.get_by_role("region", name="Application")
    expect(application).to_contain_text("It starts when the worker is free")
    expect(page.locator("#announcer")).to_contain_text("1 change of it wait for an approval" if waiting else "worker is free")
    with service.index.write() as connection:
        (queued,) = requests.list_queued(connection, requests.RUN_KINDS)
        requests.set_request_state(connection, queued.id, requests.RUNNING, run_id=service.run.id)
    assert queued.argument == {"plans": [service.plan]}
    expect(application).to_contain_text("running")
    expect(application).to_be_focused()  # in place of the button, for those who work by keyboard
    runs.finish_run(service.index, service.run, "partial", summary={}, error="1 change was skipped")
    result = page.get_by_role("region", name="Result")
    expect(result).to_contain_text("partial 1 change was skipped")
    expect(page.locator("#result")).to_be_focused()
    result.get_by_role("link", name="Open the run").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(service.run.id)


def test_a_plan_that_waits_for_a_command_cannot_be_approved(open_page: OpenPage, service: Service) -> None:
    with service.index.write() as connection:
        plan = Plan.from_json(plans.get_plan(connection, service.plan).content)
        command = "federator sources confirm lake"
        hold = Hold("identity_changed", "another catalog responds for lake", Binds.ALL, LiftedBy.CONFIRMATION, command)
        waiting = replace(plan, holds=(*plan.holds, hold))
        body, guarded = json.dumps(waiting.to_json()), guarded_digest(waiting)
        plans.save_plan(
            connection, digest=waiting.digest, mirror="nightly", run_id="r", state="held", body=body, guarded=guarded
        )
    page = open_page(f"plans/{waiting.digest}")
    expect(page.get_by_role("button", name="Reject")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    expect(page.locator("main")).to_contain_text("It can be approved after: federator sources confirm lake")


def test_a_held_plan_without_changes_offers_no_approval_and_is_not_green(open_page: OpenPage, service: Service) -> None:
    with service.index.write() as connection:
        plan = Plan.from_json(plans.get_plan(connection, service.plan).content)
        refusal = Refusal(Reason.NOT_COVERED, "copy", "sales$gone", "sales$gone", "the listing of copy proves nothing")
        refused = replace(plan, changes=(), refusals=(refusal,))
        body, guarded = json.dumps(refused.to_json()), guarded_digest(refused)
        plans.save_plan(
            connection, digest=refused.digest, mirror="nightly", run_id="r", state="held", body=body, guarded=guarded
        )
    page = open_page(f"plans/{refused.digest}")
    expect(page.get_by_role("button", name="Reject")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    assert "0" not in page.locator("#decision .stack").inner_text().split()
    expect(page.get_by_role("region", name="Changes").locator(".empty .tone-ok")).to_have_count(0)


def test_drift_is_listed_by_severity(open_page: OpenPage) -> None:
    page = open_page("drift")
    expect(page.get_by_role("table", name="Drift").get_by_role("link", name="copy$sales$orders")).to_have_text("orders")
    page.get_by_role("group", name="Severity").get_by_role("button", name="high").click()
    expect(page.locator("main")).to_contain_text("No drift matches")


def test_on_a_phone_a_remedy_has_the_whole_width(open_page: OpenPage) -> None:
    page = open_page("drift")
    page.set_viewport_size({"width": 390, "height": 800})
    cell = page.get_by_role("button", name="Plan nightly").locator("xpath=ancestor::td")
    expect(cell).to_be_visible()
    assert cell.evaluate("cell => cell.clientWidth / cell.parentElement.clientWidth") > 0.8


def test_a_long_detail_takes_several_lines_instead_of_room_beyond_the_table(open_page: OpenPage, service: Service) -> None:
    with service.index.write() as connection:
        insert_drift(connection, Drift(DriftKind.ORPHAN, "", "s3://lake/lost.lance", "lake", "no catalog declares it " * 20))
    page = open_page("drift")
    page.get_by_role("group", name="State").get_by_role("button", name="resolved").click()
    expect(page.locator("main")).to_contain_text("Resolved drift")
    page.get_by_role("group", name="State").get_by_role("button", name="open").click()
    expect(page.get_by_role("table", name="Drift")).to_contain_text("no catalog declares it")
    sideways = page.locator(".scroll").evaluate("node => node.scrollWidth - node.clientWidth")
    assert sideways == 0


def test_an_orphan_is_declared_from_the_drift_page(open_page: OpenPage, service: Service) -> None:
    location = "s3://lake/lost/orders.lance"
    with service.index.write() as connection:
        insert_drift(connection, Drift(DriftKind.ORPHAN, "", location, "lake", "no catalog declares it"))
    expect(open_page("").get_by_role("region", name="Needs attention")).to_contain_text("in no catalog: 1")
    page = open_page("drift")
    page.get_by_role("table", name="Drift").get_by_role("link", name=location).click()
    page.get_by_label("Into").select_option("lake")
    page.get_by_label("As (sales$orders)").fill("sales$found")
    page.get_by_role("button", name="Plan the declaration").click()
    expect(page.locator("main")).to_contain_text("The plan is made when the worker is free")
    with service.index.write() as connection:
        (asked,) = requests.list_queued(connection, requests.RUN_KINDS)
        plans.save_plan(connection, digest="d" * 64, mirror="declare:lake", run_id="made", state="ready", body=_DECLARED)
        requests.set_request_state(connection, asked.id, requests.DONE, run_id="made")
    assert asked.argument == {"places": [location], "into": ["lake"], "template": "sales$found", "roots": True}
    page.get_by_role("link", name="d" * 12).click()
    expect(page.get_by_role("button", name="Apply")).to_be_visible()


@pytest.mark.parametrize(
    "address", ["drift", "plans", "t/copy%24sales?kind=namespace", "t/copy%24sales%24orders", "search?q=orders"]
)
def test_what_is_shown_says_how_fresh_it_is(open_page: OpenPage, address: str) -> None:
    expect(open_page(address).locator("main")).to_contain_text("As crawled: copy")


@pytest.mark.parametrize("width", [390, 1200])
def test_no_name_is_too_long_for_the_page(open_page: OpenPage, service: Service, width: int) -> None:
    name = "an_extraordinarily_long_name_" * 6
    fill(service.index, "copy", table("copy", "sales", name, location=f"s3://bucket/{name}.lance"))
    page = open_page(f"t/copy%24sales%24{name}")
    page.set_viewport_size({"width": width, "height": 800})
    expect(page.get_by_role("region", name="Declarations")).to_contain_text("(this)")
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert page.evaluate("document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth") <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_schemes_have_readable_colours(open_page: OpenPage, scheme: str) -> None:
    page = open_page("sources")
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    expect(page.get_by_role("table", name="Sources")).to_be_visible()
    ink, paper = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    light = sum(int(part) for part in paper.strip("rgb()").split(",")) > sum(
        int(part) for part in ink.strip("rgb()").split(",")
    )
    assert light == (scheme == "light")


def test_a_table_that_is_gone_has_its_history_and_leads_on(service: Service, browser: Browser) -> None:
    fill(service.index, "lake", table("lake", "sales", "late"))
    fill(service.index, "lake", gone=[("sales", "late")])
    with browser.new_context(base_url=service.url) as context:  # not found: the browser writes that to its console
        page = context.new_page()
        page.goto("/ui/t/lake%24sales%24late")
        main = page.locator("main")
        expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
        expect(main.get_by_role("alert")).to_have_text("There is no table lake$sales$late")
        expect(main).not_to_contain_text("federator search")
        expect(main.get_by_role("button", name="Try again")).to_have_count(0)
        expect(main.get_by_role("link", name="Changes of lake")).to_have_attribute("href", "/ui/changes?source=lake&from=-7d")
        expect(page.get_by_role("region", name="History").get_by_role("listitem")).not_to_have_count(0)
        main.get_by_role("link", name="Search late").click()
        expect(page.get_by_role("searchbox", name="Search tables")).to_have_value("late")


def test_an_unknown_address_is_reported(open_page: OpenPage) -> None:
    page = open_page("nowhere")
    expect(page.get_by_role("alert")).to_have_text("there is no page at /ui/nowhere")


@pytest.mark.parametrize(
    ("old", "heading"), [("#/runs", "Runs"), ("#/table/lake%24sales%24orders", "orders"), ("#/drift/high", "Drift")]
)
def test_addresses_of_the_first_page_still_lead_to_their_view(
    open_page: OpenPage, service: Service, old: str, heading: str
) -> None:
    page = open_page("sources")
    page.goto(f"{service.url}/{old}")
    expect(page.get_by_role("heading", level=1, name=heading)).to_be_visible()
