"""What a person has in hand while events arrive: a list does not move under the cursor, and nothing is lost when it is shown again."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import APIResponse, Browser, Locator, Page, Route, expect

from federator.store import runs
from federator.store import tables as t
from tests.fixtures.index_content import fill, table
from tests.fixtures.waiting import wait_until
from tests.web.conftest import Service, open_context

OpenPage = Callable[[str], Page]


def _insert_runs(service: Service, number: int) -> list[runs.RunHandle]:
    return [runs.insert_run(service.index, "plan", trigger="request", actor=f"actor-{at}") for at in range(number)]


def _open_live(open_page: OpenPage, address: str) -> Page:
    """Open a view, and wait for the state that later ones are compared with."""
    page = open_page(address)
    expect(page.locator(".tools > span.live")).to_have_text("Live")
    expect(page.locator("main h1")).to_be_visible()
    page.evaluate("document.querySelector('main h1').toggleAttribute('data-old', true)")
    return page


def _expect_shown_again(page: Page) -> None:
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("main h1[data-old]")).to_have_count(0)


def _row(page: Page, text: str) -> Locator:
    return page.get_by_role("row").filter(has_text=text)


def test_rows_in_hand_stay_while_new_ones_are_announced(open_page: OpenPage, service: Service) -> None:
    first, second = _insert_runs(service, 2)
    page = _open_live(open_page, "runs")
    expect(_row(page, second.id)).to_be_visible()
    for key in "jjxj":
        page.keyboard.press(key)
    # The newest run is the first row: the second one is selected, the third has the focus.
    expect(_row(page, first.id)).to_have_class(re.compile("picked"))
    expect(_row(page, service.run.id)).to_be_focused()
    page.evaluate("() => { window.shown = document.querySelector('main tbody'); }")
    (third,) = _insert_runs(service, 1)
    runs.finish_run(service.index, first, "failed", summary={}, error="no catalog")
    notice = page.get_by_role("button", name="1 new")
    expect(notice).to_be_visible()
    # What is shown has its newest values, at the places where it was.
    expect(_row(page, first.id)).to_contain_text("failed")
    expect(_row(page, third.id)).to_have_count(0)
    expect(_row(page, first.id)).to_have_class(re.compile("picked"))
    expect(_row(page, service.run.id)).to_be_focused()
    assert page.evaluate("document.querySelector('main tbody') === window.shown")
    notice.click()
    expect(_row(page, third.id)).to_be_focused()
    expect(_row(page, first.id)).to_have_class(re.compile("picked"))
    expect(notice).to_have_count(0)
    page.keyboard.press("c")
    assert page.evaluate("document.querySelectorAll('.picked').length") == 1


def test_what_changes_before_the_stream_is_open_is_shown(browser: Browser, service: Service) -> None:
    page = browser.new_page(base_url=service.url)
    held: list[Route] = []
    page.route("**/api/v1/events", lambda route: held.append(route))
    page.goto("/ui/runs")
    expect(_row(page, service.run.id)).to_be_visible()
    expect(page.locator(".tools > a.live")).to_contain_text("fresh")
    (new,) = _insert_runs(service, 1)
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    expect(_row(page, new.id)).to_be_visible()
    page.close()


def test_a_list_that_nobody_works_in_follows_at_once(open_page: OpenPage, service: Service) -> None:
    page = _open_live(open_page, "runs")
    expect(_row(page, service.run.id)).to_be_visible()
    (new,) = _insert_runs(service, 1)
    expect(_row(page, new.id)).to_be_visible()
    expect(page.get_by_role("button", name="1 new")).to_have_count(0)


def test_a_row_under_the_pointer_does_not_move(open_page: OpenPage, service: Service) -> None:
    page = _open_live(open_page, "runs")
    _row(page, service.run.id).hover()
    (new,) = _insert_runs(service, 1)
    expect(page.get_by_role("button", name="1 new")).to_be_visible()
    expect(_row(page, new.id)).to_have_count(0)


def test_what_is_unfolded_chosen_and_typed_outlives_a_crawl(open_page: OpenPage, service: Service) -> None:
    page = _open_live(open_page, "t/lake%24sales%24orders?tab=schema")
    tab = page.get_by_role("tab", name="History")
    tab.click()
    expect(page.get_by_role("tabpanel", name="History")).to_be_visible()
    page.get_by_role("tree").press("Home")
    namespace = page.get_by_role("treeitem", name="sales")
    namespace.locator("svg").first.click()
    expect(namespace).to_have_attribute("aria-expanded", "false")
    tab.focus()
    fill(service.index, "lake", table("lake", "sales", "aa_late"))
    _expect_shown_again(page)
    expect(namespace).to_have_attribute("aria-expanded", "false")
    expect(page.get_by_role("tab", name="History")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="History")).to_be_visible()


def test_what_changes_while_the_tree_is_read_is_in_it(open_page: OpenPage, service: Service) -> None:
    page = _open_live(open_page, "runs")
    tree = page.get_by_role("tree")
    tree.get_by_role("treeitem", name="lake").locator("svg").first.click()
    held: list[tuple[Route, APIResponse]] = []
    address = "**/api/v1/tree?path=lake%24sales&*"
    page.route(address, lambda route: route.continue_() if held else held.append((route, route.fetch())))
    tree.get_by_role("treeitem", name="sales").locator("svg").first.click()
    wait_until(lambda: bool(page.title() and held), "the namespace was read")
    fill(service.index, "lake", table("lake", "sales", "aa_late"))
    expect(tree.get_by_role("treeitem", name="lake")).to_contain_text("63")
    ((route, response),) = held
    route.fulfill(response=response)
    expect(tree.get_by_role("treeitem", name="events_000")).to_be_visible()
    expect(tree.get_by_role("treeitem", name="aa_late")).to_be_visible()


def _press(page: Page, element: Locator, change: Callable[[], None]) -> None:
    """Press and release the pointer, with a change of the page between them."""
    element.hover()
    page.mouse.down()
    change()
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))")
    page.mouse.up()


def test_a_click_counts_if_the_view_and_the_tree_change_meanwhile(open_page: OpenPage, service: Service) -> None:
    page = _open_live(open_page, "t/lake%24sales%24orders")
    tree, tab = page.get_by_role("tree"), page.get_by_role("tab", name="History")
    row = tree.get_by_role("treeitem", name="events_055")
    expect(row).to_be_visible()
    held: dict[str, tuple[Route, APIResponse]] = {}

    def hold(name: str, address: str) -> None:
        page.route(address, lambda route: route.continue_() if name in held else held.update({name: (route, route.fetch())}))

    def release(name: str) -> None:
        route, response = held[name]
        route.fulfill(response=response)

    hold("view", "**/api/v1/tables/lake%24sales%24orders")
    hold("tree", "**/api/v1/tree?path=lake%24sales&*")
    fill(service.index, "lake", table("lake", "sales", "aa_late"))
    wait_until(lambda: bool(page.title() and len(held) == 2), "the view and the tree were read")
    _press(page, tab, lambda: release("view"))
    # The view that is shown now was read when another tab was chosen.
    _expect_shown_again(page)
    expect(tab).to_have_attribute("aria-selected", "true")
    _press(page, row, lambda: release("tree"))
    expect(page.get_by_role("heading", level=1, name="events_055")).to_be_visible()


def test_a_folded_group_of_a_plan_and_a_typed_comment_outlive_another_plan(open_page: OpenPage, service: Service) -> None:
    page = _open_live(open_page, f"plans/{service.plan}")
    page.locator("summary", has_text="Deregister").click()
    page.get_by_role("textbox").fill("asked ann, who")
    page.get_by_role("button", name="Reject").focus()
    with service.index.write() as connection:
        connection.execute(t.plan.update().values(decided_at=1.0))
    _expect_shown_again(page)
    expect(page.locator("details", has=page.locator("summary", has_text="Deregister"))).not_to_have_attribute("open", "")
    expect(page.get_by_role("textbox")).to_have_value("asked ann, who")
    expect(page.get_by_role("button", name="Reject")).to_be_focused()


def test_selected_text_stays_until_it_is_let_go(open_page: OpenPage, service: Service) -> None:
    page = _open_live(open_page, "t/lake%24sales%24orders")
    page.evaluate("() => getSelection().selectAllChildren(document.querySelector('main .sub'))")
    text = page.evaluate("String(getSelection())")
    assert "s3://lake/sales/orders.lance" in text
    fill(service.index, "lake", table("lake", "sales", "orders", owner="eve"))
    notice = page.get_by_role("button", name="1 new")  # the event in "Latest changes"
    expect(notice).to_be_visible()
    assert page.evaluate("String(getSelection())") == text
    notice.click()
    expect(page.get_by_role("main")).to_contain_text("eve")


def test_ages_grow_while_a_view_is_open(service: Service, browser: Browser) -> None:
    (run,) = _insert_runs(service, 1)
    with open_context(service, browser) as open_page:
        page = open_page("settings")
        page.clock.install()
        page.goto("/ui/runs")
        age = _row(page, run.id).locator("time").first
        expect(age).to_have_text(re.compile(r"^\d+ s ago$"))
        # Shorter than a stream may be silent: nothing else happens. A busy machine took some of the first minute.
        page.clock.fast_forward(30_000)
        expect(age).to_have_text(re.compile(r"^([3-9]\d s|\d min) ago$"))


def test_changes_are_polled_where_the_stream_does_not_come_through(service: Service, browser: Browser) -> None:
    """A proxy that buffers keeps the events, and everything else works."""
    with open_context(service, browser) as open_page:
        page = open_page("settings")
        page.route("**/api/v1/events", lambda route: None)
        page.clock.install()
        page.goto("/ui/runs")
        status = page.locator(".tools > span.live")
        expect(status).to_have_text("Connecting")  # for 10 s, which a busy machine may need to show the view
        expect(_row(page, service.run.id)).to_be_visible()
        page.clock.fast_forward(11_000)
        expect(status).to_have_text("Every 15 s")
        expect(page.locator("#outage")).to_have_count(0)
        (new,) = _insert_runs(service, 1)
        runs.finish_run(service.index, service.run, "failed", summary={}, error="no catalog")
        fill(service.index, "lake", table("lake", "aa_late"))
        page.clock.fast_forward(15_000)
        expect(_row(page, new.id)).to_be_visible()
        expect(_row(page, service.run.id)).to_contain_text("failed")
        page.get_by_role("treeitem", name="lake").click()
        expect(page.get_by_role("treeitem", name="aa_late")).to_be_visible()
