"""The page in a real Chromium: what someone sees, and does."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from federator.index import coverage, plans, requests, revisions, runs
from federator.index.leases import hold
from federator.model import Coverage, carried
from federator.model.drift import Drift, DriftKind
from federator.planning.plan import Plan
from tests.integration.index_support import fill, table
from tests.web.conftest import Service, _drift

Look = Callable[[str], Page]
_EMPTY = json.dumps(Plan("declare:lake", "d", 1, 1).to_json())


def test_sources_say_how_fresh_they_are_and_what_was_not_read(look: Look) -> None:
    page = look("")
    row = page.get_by_role("row").filter(has_text="lake")
    expect(row).to_contain_text("partial")
    expect(row).to_contain_text("1 of 3 namespaces failed")
    row.get_by_role("link", name="lake").click()
    expect(page.get_by_role("heading", name="lake", exact=True)).to_be_visible()
    expect(page.get_by_role("table", name="Not read in full")).to_contain_text("denied by the metastore")


def test_a_source_is_crawled_and_what_was_carried_is_read_again(look: Look, service: Service) -> None:
    whole = carried(1)
    with hold(service.index, "source:copy") as lease:
        draft = revisions.begin(service.index, lease, "copy", "run-2", 0.0)
        with service.index.write() as connection:
            coverage.write(connection, draft, [Coverage("copy", ("sales",), whole, whole)], {})
        revisions.publish(service.index, lease, draft, added=0, changed=0, removed=0, values={"state": "ok"})
    page = look("source/copy")
    expect(page.locator("main")).to_contain_text("1: the catalog's feed of changes did not name them")
    for button in ("Crawl", "Crawl in full"):
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("asked for a crawl")
        page.get_by_role("status").evaluate("node => { node.textContent = ''; }")
    with service.index.read() as connection:
        asked = [each.argument for each in requests.queued(connection, requests.RUNS)]
    assert asked == [{"sources": ["copy"]}, {"sources": ["copy"], "full": True}]


def test_the_tree_unfolds_by_keyboard_down_to_a_table(look: Look) -> None:
    page = look("tree")
    copy = page.locator("summary").filter(has_text="copy")
    copy.focus()
    page.keyboard.press("Enter")
    sales = page.locator("details").filter(has=copy).locator("summary").filter(has_text="sales")
    expect(sales).to_be_visible()
    sales.focus()
    page.keyboard.press("Enter")
    entry = page.get_by_role("link", name="parted")
    expect(entry).to_be_visible()
    entry.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="copy$sales$parted")).to_be_visible()
    expect(page.locator("main")).to_contain_text("s3://other/parted")


def test_the_merged_tree_shows_homes_and_conflicts(look: Look) -> None:
    page = look("tree/merged")
    page.locator("summary").filter(has_text="sales").click()
    parted = page.locator("li.entry").filter(has=page.get_by_role("link", name="parted", exact=True))
    expect(parted).to_contain_text("conflict: different places")
    expect(parted.get_by_role("listitem").first).to_contain_text("copy$sales$parted")
    orders = page.locator("li.entry").filter(has=page.get_by_role("link", name="orders", exact=True))
    expect(orders).to_contain_text("2 homes")


def test_a_search_is_narrowed_by_its_facets_and_pages(look: Look) -> None:
    page = look("search")
    page.get_by_role("searchbox").fill("sales$*")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("64 tables")
    found = page.get_by_role("table", name="Tables found").locator("tbody tr")
    expect(found).to_have_count(50)
    page.get_by_role("button", name="Show more").click()
    expect(found).to_have_count(64)
    page.get_by_role("region", name="Owner").get_by_role("link", name="ann").click()
    expect(found).to_have_count(2)
    page.get_by_role("region", name="Source").get_by_role("link", name="copy").click()
    expect(found).to_have_count(1)
    expect(found).to_contain_text("copy$sales$orders")
    look("search/parted")
    expect(found).to_have_count(2)
    page.get_by_role("region", name="Owner").get_by_role("link", name='Joe "J" Doe').click()
    expect(found).to_have_count(1)
    look("search/nothing%20like%20it")
    expect(page.locator("main")).to_contain_text("Nothing matches")


def test_a_table_tells_all_that_is_known_of_it_and_no_secret(look: Look) -> None:
    page = look("table/lake%24sales%24orders")
    expect(page.get_by_role("region", name="Declarations")).to_contain_text(
        "property:team: copy$sales$orders against lake$sales$orders"
    )
    expect(page.get_by_role("region", name="Verification")).to_contain_text("12,345")
    expect(page.get_by_role("region", name="Drift")).to_contain_text("properties differ")
    expect(page.get_by_role("region", name="Explanation")).to_contain_text("no mirror of ours put it there")
    expect(page.get_by_role("table", name="Properties")).to_contain_text("(masked)")
    expect(page.locator("main")).to_contain_text("What was <b>sold</b>")
    assert "hunter2" not in page.content()
    page.get_by_role("region", name="Declarations").get_by_role("link", name="copy$sales$orders").click()
    expect(page.get_by_role("heading", name="copy$sales$orders")).to_be_visible()


def test_a_run_is_followed_while_it_goes_on(look: Look, service: Service) -> None:
    page = look(f"run/{service.run.id}")
    expect(page.locator("#run")).to_contain_text("running")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    runs.progress(service.index, service.run, "lake: 7 of 9 shards")
    expect(page.locator("#run")).to_contain_text("lake: 7 of 9 shards", timeout=60_000)
    runs.finish(service.index, service.run, "ok", summary={})
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden(timeout=60_000)
    expect(page.locator("#run")).not_to_contain_text("7 of 9")


@pytest.mark.parametrize(("button", "state"), [("Approve", "approved"), ("Reject", "rejected")])
def test_a_held_plan_is_decided(look: Look, service: Service, button: str, state: str) -> None:
    page = look("plans")
    page.get_by_role("table", name="Held plans").get_by_role("link").click()
    expect(page.get_by_role("region", name="Held")).to_contain_text("it would deregister 40% of the mirror's tables")
    waiting, going = page.get_by_role("table", name="Changes").locator("tbody tr").all()
    expect(waiting).to_contain_text("waits: max delete percent")
    expect(going).to_contain_text("goes")
    if state == "rejected":
        page.get_by_role("button", name="Apply the others").click()
        expect(page.get_by_role("status")).to_contain_text(
            "asked the worker to apply it; 1 of its changes wait for an approval"
        )
    with service.index.read() as connection:
        guarded = plans.get(connection, service.plan)["guarded"]
    with page.expect_request("**/approve" if state == "approved" else "**/reject") as decided:
        page.get_by_role("button", name=button).click()
    assert decided.value.headers["if-match"] == f'"{guarded}"'
    expect(page.get_by_role("status")).to_have_text(state)
    with service.index.read() as connection:
        assert plans.get(connection, service.plan)["state"] == state
    if state == "approved":
        page.get_by_role("button", name="Apply", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("asked the worker")
        with service.index.read() as connection:
            assert [asked.argument for asked in requests.queued(connection, requests.RUNS)] == [{"plans": [service.plan]}]


def test_drift_is_listed_by_severity(look: Look) -> None:
    page = look("drift")
    expect(page.get_by_role("table", name="Drift")).to_contain_text("copy$sales$orders")
    page.get_by_label("Severity").select_option("high")
    expect(page.locator("main")).to_contain_text("Nothing has drifted")


def test_an_orphan_is_declared_from_the_drift_page(look: Look, service: Service) -> None:
    place = "s3://lake/lost/orders.lance"
    with service.index.write() as connection:
        _drift(connection, Drift(DriftKind.ORPHAN, "", place, "lake", "no catalog declares it"))
    page = look("drift")
    page.get_by_role("link", name=place).click()
    page.get_by_label("Into").select_option("lake")
    page.get_by_label("As (sales$orders)").fill("sales$found")
    page.get_by_role("button", name="Plan the declaration").click()
    expect(page.locator("main")).to_contain_text("it is made when the worker is free")
    with service.index.write() as connection:
        (asked,) = requests.queued(connection, requests.RUNS)
        plans.save(connection, digest="d" * 64, mirror="declare:lake", run_id="made", state="ready", body=_EMPTY)
        requests.set_state(connection, asked.id, requests.DONE, run_id="made")
    assert asked.argument == {"places": [place], "into": ["lake"], "template": "sales$found", "roots": True}
    page.get_by_role("link", name="d" * 12).click()
    expect(page.get_by_role("button", name="Apply")).to_be_visible()


@pytest.mark.parametrize("address", ["drift", "plans", "tree/merged", "table/copy%24sales%24orders", "search/orders"])
def test_what_is_shown_says_how_fresh_it_is(look: Look, address: str) -> None:
    expect(look(address).locator("main")).to_contain_text("As crawled: copy")


@pytest.mark.parametrize("width", [390, 1200])
def test_no_name_is_too_long_for_the_page(look: Look, service: Service, width: int) -> None:
    name = "an_extraordinarily_long_name_" * 6
    fill(service.index, "copy", table("copy", "sales", name, location=f"s3://bucket/{name}.lance"))
    page = look(f"table/copy%24sales%24{name}")
    page.set_viewport_size({"width": width, "height": 800})
    expect(page.get_by_role("region", name="Declarations")).to_contain_text("(this)")
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_schemes_have_readable_colours(look: Look, scheme: str) -> None:
    page = look("")
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    expect(page.get_by_role("table", name="Sources")).to_be_visible()
    ink, paper = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    light = sum(int(part) for part in paper.strip("rgb()").split(",")) > sum(
        int(part) for part in ink.strip("rgb()").split(",")
    )
    assert light == (scheme == "light")


def test_what_is_not_there_is_said(look: Look) -> None:
    page = look("nowhere")
    expect(page.get_by_role("status")).to_have_text("there is no such page")
