"""A past state of the tree, and what can be done with rows by keyboard alone."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from federator.model.drift import Drift, DriftKind
from federator.store import requests, run_stages, runs
from federator.store import tables as t
from tests.fixtures.index_content import fill, namespace, table
from tests.web.conftest import Service, insert_drift, open_context, run_service, track_open_requests, wait_until_loaded

OpenPage = Callable[[str], Page]


@pytest.fixture
def crawls(service: Service) -> list[str]:
    """Two crawls: the first finds a table, the second finds that it has moved, and another one."""
    ids = []
    for location, names in (("s3://lake/first", ["moved"]), ("s3://lake/second", ["moved", "late"])):
        run = runs.insert_run(service.index, "crawl", trigger="schedule", actor="worker")
        fill(
            service.index, "lake", *(table("lake", "sales", name, location=f"{location}/{name}") for name in names), run=run.id
        )
        runs.finish_run(service.index, run, "ok", summary={})
        ids.append(run.id)
    return ids


def test_a_snapshot_is_selected_in_the_header_and_stays(open_page: OpenPage, crawls: list[str], service: Service) -> None:
    page = open_page("t/lake%24sales%24moved")
    banner, tree = page.locator("#past"), page.get_by_role("tree")
    expect(page.locator("main")).to_contain_text("s3://lake/second/moved")
    expect(tree.get_by_role("treeitem", name="late")).to_be_visible()
    expect(banner).to_be_hidden()
    page.get_by_role("button", name="Current").click()
    dialog = page.get_by_role("dialog", name="Snapshot")
    expect(dialog.get_by_role("button", name="after crawl")).to_have_count(2)
    dialog.locator(f"[data-run='{crawls[0]}']").click()
    expect(banner).to_contain_text("A past state is shown")
    expect(page).to_have_url(re.compile(f"as_of={crawls[0]}$"))
    expect(page.locator("main")).to_contain_text("s3://lake/first/moved")
    expect(page.get_by_role("button", name="Verify now")).to_have_count(0)
    # The tree shows the same moment, and what is opened in it, too.
    expect(tree.get_by_role("treeitem", name="moved")).to_be_visible()
    expect(tree.get_by_role("treeitem", name="late")).to_have_count(0)
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="sales").click()
    page.get_by_role("button", name="Show more").click()
    expect(page.get_by_role("table", name="Contents").get_by_role("link", name="moved")).to_be_visible()
    expect(page.get_by_role("table", name="Contents").get_by_role("link", name="late")).to_have_count(0)
    expect(page).to_have_url(re.compile(f"as_of={crawls[0]}"))
    # A view without a history says so, and changes nothing.
    page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="Runs").click()
    expect(banner).to_contain_text("Runs shows the present: it has no history.")
    expect(page.get_by_role("button", name="Start")).to_be_disabled()
    page.keyboard.press("Control+k")
    page.keyboard.type("> crawl lake")
    page.keyboard.press("Enter")
    expect(page.locator("#announcer")).to_contain_text("nothing can be changed in it")
    with service.index.read() as connection:
        assert requests.list_queued(connection, requests.RUN_KINDS) == []
    banner.get_by_role("button", name="Back to the present").click()
    expect(banner).to_be_hidden()
    expect(page.get_by_role("button", name="Start")).to_be_enabled()
    page.go_back()
    expect(banner).to_be_visible()


def test_a_step_of_the_breadcrumb_opens_what_is_beside_it(open_page: OpenPage) -> None:
    page = open_page("t/lake%24sales%24orders")
    crumbs, palette = page.get_by_role("navigation", name="Breadcrumb"), page.get_by_role("dialog", name="Search or jump to")
    crumbs.get_by_role("button", name="Beside orders").click()
    expect(palette.get_by_role("option").first).to_be_visible()
    page.keyboard.type("events_01")
    expect(palette.get_by_role("option")).to_have_count(10)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="events_010")).to_be_visible()
    crumbs.get_by_role("button", name="Beside lake").click()
    expect(palette.get_by_role("option")).to_have_text(["copy", "lake"])
    # Tab looks inside, Backspace goes up again.
    page.keyboard.press("Tab")
    expect(palette.get_by_role("option")).to_have_text(["sales"])
    page.keyboard.press("Tab")
    expect(palette.get_by_role("option")).to_have_text(["orders", "parted"])
    page.keyboard.press("Backspace")
    expect(palette.get_by_role("option")).to_have_text(["sales"])


def test_the_palette_finds_plans_and_runs(open_page: OpenPage, service: Service) -> None:
    page = open_page("")
    palette = page.get_by_role("dialog", name="Search or jump to")
    expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("# nightly")
    expect(palette.get_by_role("option")).to_contain_text([service.plan[:12]])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Plan for nightly")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("#running")
    expect(palette.get_by_role("option")).to_contain_text([service.run.id])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="crawl")).to_be_visible()


@pytest.mark.parametrize(
    ("typed", "command", "kind", "argument"),
    [
        ("> pause night", "Pause the job sync:nightly", "pause", {"job": "sync:nightly"}),
        ("> plan", "Plan nightly", "plan", {"mirrors": ["nightly"]}),
    ],
)
def test_the_palette_has_commands_for_mirrors_and_jobs(
    open_page: OpenPage, service: Service, typed: str, command: str, kind: str, argument: dict[str, object]
) -> None:
    page = open_page("runs")
    expect(page.get_by_role("table", name="Runs")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type(typed)
    expect(page.get_by_role("dialog").get_by_role("option", selected=True)).to_have_text(command)
    page.keyboard.press("Enter")
    expect(page.locator("#announcer")).to_contain_text("requested")
    with service.index.read() as connection:
        (queued,) = requests.list_queued(connection, [kind])
    assert queued.argument == argument


def test_rows_are_moved_through_selected_copied_and_acted_on_by_keys(open_page: OpenPage, service: Service) -> None:
    page = open_page("t/lake%24sales?kind=namespace")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    rows = page.get_by_role("table", name="Contents").locator("tbody tr")
    expect(rows.first).to_be_visible()
    for key in "jjjk":
        page.keyboard.press(key)
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("c")
    expect(page.locator("#announcer")).to_contain_text("Copied: lake$sales$events_001")
    page.keyboard.press("x")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("x")
    expect(page.locator("#announcer")).to_contain_text("2 rows selected")
    page.keyboard.press("c")
    expect(page.locator("#announcer")).to_contain_text("2 ids copied")
    assert page.evaluate("navigator.clipboard.readText()") == "lake$sales$events_001\nlake$sales$events_002"
    page.keyboard.press(".")
    actions = page.get_by_role("dialog", name="Actions")
    expect(actions.get_by_role("button")).to_have_text(["Copy 2 ids", "Verify 2 tables now"])
    actions.get_by_role("button", name="Verify").click()
    expect(page.locator("#announcer")).to_contain_text("Verification of 2 tables requested")
    with service.index.read() as connection:
        (queued,) = requests.list_queued(connection, ("verify",))
    assert queued.argument["tables"] == ["lake$sales$events_001", "lake$sales$events_002"]
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="events_001")).to_be_visible()


def test_keys_keep_their_order_while_their_module_is_loaded(open_page: OpenPage) -> None:
    page = open_page("t/lake%24sales?kind=namespace")
    rows = page.get_by_role("table", name="Contents").locator("tbody tr")
    expect(rows.first).to_be_visible()
    with page.expect_response("**/views/list_keys.js") as response:
        page.route("**/views/list_keys.js", lambda route: (page.wait_for_timeout(300), route.continue_()))
        page.evaluate("for (const key of 'jjjk') document.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}))")
    assert response.value.ok
    expect(rows.nth(1)).to_be_focused()


def test_the_contents_of_a_namespace_are_sorted_by_what_is_stored(open_page: OpenPage) -> None:
    page = open_page("t/lake%24sales?kind=namespace")
    contents = page.get_by_role("table", name="Contents")
    first = contents.locator("tbody tr").first
    expect(first).to_contain_text("events_000")
    contents.get_by_role("button", name="Rows").press("Enter")
    expect(first).to_contain_text("orders")
    expect(first).to_contain_text("12,345")
    expect(contents.get_by_role("columnheader", name="Rows")).to_have_attribute("aria-sort", "descending")
    expect(contents.get_by_role("button", name="Rows")).to_be_focused()
    page.reload()
    expect(first).to_contain_text("orders")
    page.get_by_role("button", name="Show more").click()
    expect(contents.get_by_role("link", name="events_059")).to_be_visible()
    contents.get_by_role("button", name="State").press("Enter")
    expect(contents.get_by_role("columnheader", name="State")).to_have_attribute("aria-sort", "ascending")


@pytest.mark.parametrize("hostile", ["<img src=x onerror=alert(1)>", "\u202egnp.exe", "a" * 240 + "_the_end", "tab\tnew\nline"])
def test_hostile_names_are_text_in_the_new_parts(open_page: OpenPage, service: Service, hostile: str) -> None:
    run = runs.insert_run(service.index, "crawl", trigger="schedule", actor="worker")
    fill(service.index, "lake", namespace("lake", "odd"), table("lake", "odd", hostile, location="s3://lake/odd"), run=run.id)
    runs.finish_run(service.index, run, "ok", summary={})
    page = open_page(f"t/{quote(f'lake$odd${hostile}', safe='')}?as_of={run.id}")
    expect(page.locator("#past")).to_contain_text("A past state is shown")
    expect(page.locator("main")).to_contain_text("s3://lake/odd")
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("button").last.click()
    palette = page.get_by_role("dialog", name="Search or jump to")
    expect(palette.get_by_role("option")).to_have_count(1)
    assert page.locator("img").count() == 0
    assert "\u202e" not in (palette.text_content() or "")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press(".")
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0


def test_runs_are_filtered_and_started(open_page: OpenPage, service: Service) -> None:
    page = open_page("runs")
    rows = page.get_by_role("table", name="Runs").locator("tbody tr")
    expect(rows).to_have_count(1)
    page.get_by_role("group", name="State").get_by_role("button", name="failed").click()
    expect(page.locator("main")).to_contain_text("No run matches")
    page.get_by_role("link", name="Clear the filter").click()
    expect(rows).to_have_count(1)
    page.get_by_role("table", name="Runs").evaluate("table => table.dataset.before = 'the filter'")
    page.get_by_label("Started in").select_option("the last hour")
    expect(page).to_have_url(re.compile("since=-1h$"))
    expect(page.locator("table[data-before]")).to_have_count(0)
    expect(rows).to_have_count(1)
    page.get_by_label("Kind of run").select_option("plan")
    page.get_by_label("Of what").select_option("nightly")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#started")).to_contain_text("It starts when the worker is free")
    with service.index.read() as connection:
        (queued,) = requests.list_queued(connection, requests.RUN_KINDS)
    assert (queued.kind, queued.argument) == ("plan", {"mirrors": ["nightly"]})


def test_a_run_is_followed_also_if_the_list_is_shown_again_before_it_is_queued(open_page: OpenPage, service: Service) -> None:
    held: list[Route] = []
    page = open_page("runs")
    page.route("**/api/v1/runs", lambda route: held.append(route) if route.request.method == "POST" else route.continue_())
    with page.expect_request(lambda request: request.method == "POST"):
        page.get_by_role("button", name="Start").click()
    page.get_by_role("group", name="State").get_by_role("button", name="failed").click()
    expect(page.locator("main")).to_contain_text("No run matches")
    held[0].continue_()
    expect(page.locator("#started")).to_contain_text("It starts when the worker is free")


def test_a_filter_whose_answer_is_late_keeps_what_was_chosen_meanwhile(open_page: OpenPage, service: Service) -> None:
    held: list[Route] = []
    page = open_page("runs")
    page.route(re.compile(r"/api/v1/runs\?.*since=-1h"), lambda route: held.append(route))
    with page.expect_request(re.compile(r"/api/v1/runs\?.*since=-1h")):
        page.get_by_label("Started in").select_option("the last hour")
    page.get_by_label("Kind of run").select_option("plan")
    page.get_by_label("Of what").select_option("nightly")
    page.get_by_role("table", name="Runs").evaluate("table => table.dataset.before = 'the answer'")
    held[0].continue_()
    page.unroute_all()
    expect(page.locator("table[data-before]")).to_have_count(0)
    expect(page.get_by_label("Started in")).to_have_value("-1h")
    expect(page.get_by_label("Kind of run")).to_have_value("plan")
    expect(page.get_by_label("Of what")).to_have_value("nightly")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#started")).to_contain_text("It starts when the worker is free")
    # What follows the request goes on when the list is filtered again, and a filter has the focus that was used.
    failed = page.get_by_role("group", name="State").get_by_role("button", name="failed")
    failed.click()
    expect(page.locator("main")).to_contain_text("No run matches")
    expect(failed).to_be_focused()
    expect(page.locator("#started")).to_contain_text("It starts when the worker is free")


def test_a_stage_shows_what_is_usual_for_it(open_page: OpenPage, service: Service) -> None:
    now, stage = time.time(), {"stage": "crawl", "subject": "lake"}
    slow = {**stage, "run_id": service.run.id, "state": "running", "started_at": now - 400, "finished_at": None}
    with service.index.write() as connection:
        for took in (10, 11, 12):
            run = {"id": f"00000000{took}", "kind": "crawl", "state": "ok", "trigger": "cli", "actor": "a", "started_at": 1.0}
            connection.execute(t.run.insert(), [run])
            ended = {**stage, "run_id": run["id"], "state": "ok", "started_at": 1.0, "finished_at": 1.0 + took}
            connection.execute(t.run_stage.insert(), [ended])
        connection.execute(t.run_stage.insert(), [slow])
    page = open_page(f"runs/{service.run.id}")
    row = page.get_by_role("table", name="Stages of the run").locator("tbody tr").first
    expect(row).to_contain_text("usually 11 s")
    expect(row.locator(".st.warn")).to_contain_text("7 min")
    # An event replaces the stages; what is usual stays, also for a stage that appears.
    run_stages.start_stage(service.index, service.run.id, "verify", "lake")
    expect(page.get_by_role("table", name="Stages of the run").locator("tbody tr")).to_have_count(2)
    expect(row).to_contain_text("usually 11 s")


def test_drift_is_counted_by_severity_and_kind(open_page: OpenPage, service: Service) -> None:
    with service.index.write() as connection:
        for number in range(3):
            insert_drift(
                connection, Drift(DriftKind.MISSING, "lake", f"lake$sales$events_00{number}", "s3://lake/x", "no manifest")
            )
    page = open_page("drift")
    severity = page.get_by_role("group", name="Severity")
    expect(severity.get_by_role("button", name="all")).to_have_text("all4")
    expect(severity.get_by_role("button", name="high")).to_have_text("high3")
    page.get_by_label("Kind").select_option("missing (3)")
    expect(page.get_by_role("table", name="Drift").locator("tbody tr")).to_have_count(3)
    expect(severity.get_by_role("button", name="medium")).to_have_text("medium0")
    page = open_page("t/lake%24sales?kind=namespace")
    expect(page.get_by_role("region", name="Drift below").get_by_role("listitem")).to_have_count(3)


def test_a_mirror_shows_its_section_of_the_configuration(open_page: OpenPage) -> None:
    page = open_page("mirrors/nightly")
    expect(page.get_by_role("region", name="Configuration")).to_contain_text('[mirrors.nightly]\nfrom = "lake"\nto = "copy"')


#: names whose end cannot be seen, or that reach beyond their cell
_CUT_NAMES = """[...document.querySelectorAll('main .mid')].filter(e => {
        if (!e.checkVisibility() || !e.getBoundingClientRect().width) return false;
        const box = e.getBoundingClientRect(), end = e.querySelector('.end'), cell = e.closest('td, li, dd');
        if (cell && box.right > cell.getBoundingClientRect().right + 1) return true;
        if (!end && box.height > 52) return true;
        if (!end) return e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline';
        const range = document.createRange();
        range.selectNodeContents(end);
        return range.getBoundingClientRect().right > box.right + 1;
    }).map(e => e.textContent)"""


@pytest.fixture(scope="module")
def long_names(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    names = [
        "quarterly_orders_europe_a",
        "quarterly_orders_europe_b",
        *("quarterly_orders_of_all_years_in_europe" * 3 + end for end in "ab"),
    ]
    folder = tmp_path_factory.mktemp("long-names")
    shutil.copy(filled, folder / "federator.db")
    with run_service(folder) as service:
        tables = (table("lake", "odd", name, location=f"s3://lake/{name}") for name in names)
        fill(service.index, "lake", namespace("lake", "odd"), *tables, run="run-9")
        yield service


@pytest.mark.parametrize(
    "address",
    ["t/lake%24odd?kind=namespace", "search?q=quarterly", "datasets", "changes", "", "sources", "mirrors", "plans", "drift"],
)
def test_names_keep_their_end_in_narrow_columns(long_names: Service, browser: Browser, address: str) -> None:
    """Names that differ only at their end can be told apart, and no name covers what is beside it."""
    with open_context(long_names, browser) as open_page:
        page = open_page("settings")
        open_requests = track_open_requests(page)
        page = open_page(address)
        expect(page.locator("main .mid").first).to_be_visible()
        wait_until_loaded(page, open_requests)
        for width in (390, 900, 1200):
            page.set_viewport_size({"width": width, "height": 800})
            assert (width, page.evaluate(_CUT_NAMES)) == (width, [])
