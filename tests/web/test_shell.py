"""What all views share: accessibility, widths, themes, the policy, budgets, and the form for a token. One service serves all tests."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Request, expect

from federator.store import runs
from tests.fixtures.index_content import fill, table
from tests.web.conftest import Service, open_context, run_service, track_open_requests, wait_until_loaded

_AXE = Path(__file__).parent / "axe" / "axe.min.js"
_AXE_DIGEST = "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb"
_RUN_AXE = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
    .filter(each => ["serious", "critical"].includes(each.impact))
    .map(each => `${each.id}: ${each.nodes[0].html} ${each.nodes[0].failureSummary}`)"""
#: as the browser's own buttons do; loading the whole page for each view would take most of the time
_GO_TO = """address => {
    document.querySelector("main h1")?.toggleAttribute("data-old", true);
    history.pushState({}, "", address);
    dispatchEvent(new PopStateEvent("popstate"));
}"""
_SIDEWAYS = "['html', 'main'].filter(each => { const e = document.querySelector(each); return e.scrollWidth > e.clientWidth; })"
_WIDE = {"viewport": {"width": 1200, "height": 900}}
_PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
#: of the first view: transferred bytes, requests and elements
_MAX_BYTES, _MAX_REQUESTS, _MAX_ELEMENTS = 100_000, 25, 1_500

VIEWS = {
    "": "Overview", "sources": "Sources", "t/lake": "lake", "t/lake%24sales?kind=namespace": "sales",
    "t/lake%24sales%24orders": "orders", "t/lake%24sales%24orders?tab=schema": "orders", "search?q=orders": "Search",
    "mirrors": "Mirrors", "mirrors/nightly": "nightly", "plans": "Plans", "plans/PLAN": "Plan for nightly", "runs": "Runs",
    "runs/RUN": "crawl", "drift": "Drift", "declare?location=s3%3A%2F%2Flake%2Fx.lance": "Declare a table", "datasets": "Datasets",
    "datasets/s3%3A%2F%2Flake%2Fsales%2Forders.lance": "orders.lance", "changes": "Changes", "audit": "Audit", "reports": "Reports",
    "settings": "Settings",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (f"{width}-{scheme}", {**options, "color_scheme": scheme})
        for width, options in (("wide", _WIDE), ("phone", _PHONE))
        for scheme in ("light", "dark")
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_view_is_accessible_and_fits(
    shared: Service, browser: Browser, tmp_path_factory: pytest.TempPathFactory, name: str, options: dict[str, object]
) -> None:
    axe = _AXE.read_text(encoding="utf-8")
    assert hashlib.sha256(axe.encode()).hexdigest() == _AXE_DIGEST
    pictures = tmp_path_factory.mktemp(f"views-{name}")
    findings: dict[str, list[str]] = {}
    with open_context(shared, browser, **options) as open_page:
        page = open_page("")
        open_requests = track_open_requests(page)
        page.evaluate(axe)
        for number, (address, heading) in enumerate(VIEWS.items()):
            page.evaluate(_GO_TO, f"/ui/{address}".replace("PLAN", shared.plan).replace("RUN", shared.run.id))
            expect(page.locator("main h1[data-old]")).to_have_count(0)
            expect(page.get_by_role("heading", level=1, name=heading).first).to_be_visible()
            wait_until_loaded(page, open_requests)
            problems = page.evaluate(_RUN_AXE)
            problems += [f"{sideway} scrolls sideways" for sideway in page.evaluate(_SIDEWAYS)]
            if "has_touch" in options:
                page.set_viewport_size({"width": 320, "height": 640})
                problems += [f"{sideway} scrolls sideways at 320 pixels" for sideway in page.evaluate(_SIDEWAYS)]
                page.set_viewport_size(_PHONE["viewport"])
            if page.evaluate("document.querySelectorAll('*').length") > _MAX_ELEMENTS:
                problems.append("too many elements")
            if problems:
                findings[address] = problems
            page.screenshot(path=pictures / f"{number:02}.png")
    assert findings == {}


def test_the_first_view_keeps_its_budget(shared: Service, browser: Browser) -> None:
    with open_context(shared, browser) as open_page:
        page = open_page("")
        expect(page.get_by_role("table", name="Sources")).to_be_visible()
        page.wait_for_timeout(1000)  # the stream of events keeps the network busy
        entries = page.evaluate(
            "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].map(e => e.transferSize)"
        )
        shift = page.evaluate(
            "new Promise(done => { new PerformanceObserver(list => done(list.getEntries().reduce((sum, e) => sum + e.value, 0)))"
            ".observe({type: 'layout-shift', buffered: true}); setTimeout(() => done(0), 300); })"
        )
    assert sum(entries) <= _MAX_BYTES
    # An open stream has no entry yet.
    assert len(entries) + 1 <= _MAX_REQUESTS
    assert shift < 0.1


@pytest.mark.parametrize("width", [1200, 1280, 1600])
def test_the_sources_of_the_overview_fit(shared: Service, browser: Browser, width: int) -> None:
    with open_context(shared, browser, viewport={"width": width, "height": 900}) as open_page:
        page = open_page("")
        sources = page.get_by_role("group", name="Sources, scrolls sideways")
        expect(sources.get_by_role("table")).to_be_visible()
        assert sources.evaluate("each => each.scrollWidth - each.clientWidth") <= 0
        # What changed stands beside what needs attention, and the header has its words.
        panels = page.get_by_role("region", name=re.compile("^(Needs attention|Recent changes)$"))
        left, right = panels.evaluate_all("panels => panels.map(panel => panel.getBoundingClientRect().y)")
        assert left == right
        expect(page.locator(".tools").get_by_text("of 2 fresh")).to_be_visible()
        expect(page.locator(".tools").get_by_text("Live")).to_be_visible()


@pytest.mark.parametrize("width", [1200, 1280, 390])
def test_the_foot_of_the_side_bar_has_one_line_and_says_who_is_signed_in(shared: Service, browser: Browser, width: int) -> None:
    with open_context(shared, browser, viewport={"width": width, "height": 800}) as open_page:
        page = open_page("sources")
        if width < 800:
            page.get_by_role("button", name="Navigation").click()
        side = page.get_by_role("complementary", name="Navigation")
        expect(side.get_by_text("api", exact=True)).to_be_visible()
        expect(side.get_by_text("admin", exact=True)).to_be_visible()
        links = side.get_by_role("navigation", name="More").get_by_role("link")
        expect(links).to_have_text(["Audit", "Reports", "Settings", "API"])
        boxes = links.evaluate_all("links => links.map(link => link.getBoundingClientRect())")  # the bar may still be moving
        assert len({box["y"] for box in boxes}) == 1
        assert all(left["right"] <= right["left"] + 1 for left, right in pairwise(boxes))


def test_a_run_id_has_one_line_on_a_phone(shared: Service, browser: Browser) -> None:
    with open_context(shared, browser, **_PHONE) as open_page:
        run = open_page("runs").get_by_role("link", name=shared.run.id).first
        expect(run).to_be_visible()
        lines = "each => each.getBoundingClientRect().height / parseFloat(getComputedStyle(each).lineHeight)"
        assert run.locator("bdi").evaluate(lines) < 1.9


def test_the_theme_is_the_systems_until_one_is_chosen(shared: Service, browser: Browser) -> None:
    with open_context(shared, browser, color_scheme="dark") as open_page:
        page = open_page("sources")
        expect(page.get_by_role("table", name="Sources")).to_be_visible()
        ground = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(ground) == "rgb(12, 15, 19)"
        page.get_by_role("button", name="Light or dark").click()
        assert page.evaluate(ground) == "rgb(246, 247, 249)"
        page.reload()
        assert page.evaluate(ground) == "rgb(246, 247, 249)"
        expect(page.get_by_role("table", name="Sources")).to_be_visible()
        ink = "getComputedStyle(document.querySelector('th')).color"
        usual = page.evaluate(ink)
        page.emulate_media(contrast="more")
        assert page.evaluate(ink) != usual


def test_rows_of_the_tree_do_not_overlap_where_the_text_is_larger(shared: Service, browser: Browser) -> None:
    with open_context(shared, browser, viewport={"width": 1600, "height": 900}) as open_page:
        page = open_page("sources")
        page.context.new_cdp_session(page).send("Page.setFontSizes", {"fontSizes": {"standard": 24}})
        page.reload()
        rows = page.get_by_role("treeitem")
        expect(rows).to_have_count(2)
        # Both rows are measured in one step, because each response replaces them.
        upper, lower = rows.evaluate_all("rows => rows.map(row => row.getBoundingClientRect())")
        assert 26 < upper["height"] <= lower["y"] - upper["y"]


def test_on_a_phone_the_tree_is_a_drawer(shared: Service, browser: Browser) -> None:
    with open_context(shared, browser, **_PHONE) as open_page:
        page = open_page("sources")
        tree = page.get_by_role("tree")
        expect(tree).to_be_hidden()
        page.get_by_role("navigation", name="Main, short").get_by_role("button", name="Explore").click()
        expect(tree).to_be_focused()
        tree.get_by_role("treeitem", name="copy").click()
        expect(page.get_by_role("heading", level=1, name="copy")).to_be_visible()
        expect(tree).to_be_hidden()
        page.get_by_role("navigation", name="Main, short").get_by_role("link", name="Plans").click()
        expect(page.get_by_role("heading", level=1, name="Plans")).to_be_visible()


@pytest.fixture
def guarded(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("PAGE_TOKEN", "lft_" + "x" * 40)
    (tmp_path / "federator.db").write_bytes(filled.read_bytes())
    with run_service(tmp_path, token="${PAGE_TOKEN}") as service:
        yield service


def test_a_token_is_asked_for_and_the_address_stays(guarded: Service, browser: Browser) -> None:
    context = browser.new_context(base_url=guarded.url)
    page = context.new_page()
    page.goto("/ui/t/lake%24sales%24orders?tab=schema")
    dialog = page.get_by_role("dialog", name="Sign in")
    dialog.get_by_label("Token").fill("wrong")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("the token is unknown")
    dialog.get_by_label("Token").fill("lft_" + "x" * 40)
    page.keyboard.press("Enter")
    expect(page.get_by_role("table", name="Columns")).to_contain_text("bigint")
    assert page.url.endswith("/ui/t/lake%24sales%24orders?tab=schema")
    expect(page.get_by_role("treeitem", selected=True)).to_have_text("orders")
    page.reload()
    expect(page.get_by_role("table", name="Columns")).to_contain_text("bigint")
    page.get_by_role("button", name="Sign out").click()
    expect(dialog).to_be_visible()
    context.close()


def test_keys_of_a_single_character_are_listed_and_can_be_turned_off(shared: Service, browser: Browser) -> None:
    with open_context(shared, browser) as open_page:
        page = open_page("sources")
        expect(page.get_by_role("table", name="Sources")).to_be_visible()
        keys = page.get_by_role("dialog", name="Keys")
        page.keyboard.press("?")
        expect(keys).to_contain_text("search or jump to")
        page.evaluate(_AXE.read_text(encoding="utf-8"))
        assert page.evaluate(_RUN_AXE) == []
        keys.get_by_label("Keys of a single character").uncheck()
        keys.get_by_role("button", name="Close").click()
        page.reload()
        expect(page.get_by_role("table", name="Sources")).to_be_visible()
        for key in ("?", "/", "g", "m"):
            page.keyboard.press(key)
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_role("heading", level=1, name="Sources")).to_be_visible()
        # Ctrl-K is no single character.
        page.keyboard.press("Control+k")
        page.keyboard.type(">keys")
        page.keyboard.press("Enter")
        keys.get_by_label("Keys of a single character").check()
        page.keyboard.press("Escape")
        expect(page.locator("dialog.keys")).to_have_count(0)
        page.keyboard.press("g")
        page.keyboard.press("m")
        expect(page.get_by_role("heading", level=1, name="Mirrors")).to_be_visible()


def test_an_outage_is_a_banner_with_the_age_of_what_is_shown(shared: Service, browser: Browser) -> None:
    context = browser.new_context(base_url=shared.url)
    page = context.new_page()
    page.clock.install()
    page.goto("/ui/sources")
    table, banner = page.get_by_role("table", name="Sources"), page.get_by_role("alert")
    expect(table).to_be_visible()
    # A stream that has sent nothing yet is replaced by polls, the first of them after 15 s.
    expect(page.locator(".tools > span.live")).to_contain_text("Live")
    context.set_offline(True)
    page.clock.fast_forward(45_000)  # the stream is silent for longer than it may be
    expect(banner).to_contain_text("The server does not respond. What is shown is")
    expect(banner).to_contain_text("Asked again in")
    expect(table).to_be_visible()
    crawl = page.get_by_role("button", name="Crawl all sources")
    expect(crawl).to_be_disabled()
    expect(crawl).to_have_attribute("title", "The server does not respond")
    box = "each => each.getBoundingClientRect()"
    assert banner.evaluate(box)["bottom"] <= page.locator("main").evaluate(box)["top"]
    context.set_offline(False)
    banner.get_by_role("button", name="Try now").click()
    expect(banner).to_have_count(0)
    expect(crawl).to_be_enabled()
    context.close()


def test_until_the_first_view_is_there_its_layout_is(shared: Service, browser: Browser) -> None:
    context = browser.new_context(base_url=shared.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/ui/")
    expect(page.locator("main .skeleton").first).to_be_visible()
    context.close()


def test_a_view_that_could_not_be_loaded_is_shown_when_the_server_responds(shared: Service, browser: Browser) -> None:
    context = browser.new_context(base_url=shared.url)
    page = context.new_page()
    page.clock.install()
    page.goto("/ui/sources")
    expect(page.get_by_role("table", name="Sources")).to_be_visible()
    context.set_offline(True)
    page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="Mirrors").click()
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("The server does not respond")
    expect(page.locator("main")).not_to_contain_text("imported module")
    page.clock.fast_forward(45_000)  # the stream is silent for longer than it may be
    context.set_offline(False)
    page.clock.fast_forward(30_000)
    expect(heading).to_have_text("Mirrors")
    context.close()


def test_badges_tree_and_overview_follow_a_crawl_without_a_reload(filled: Path, tmp_path: Path, browser: Browser) -> None:
    shutil.copy(filled, tmp_path / "federator.db")
    with run_service(tmp_path) as service, open_context(service, browser) as open_page:
        page = open_page("")
        main, tree = page.locator("main"), page.get_by_role("tree")
        badge = page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="Runs")
        expect(badge).to_contain_text("(1 running)")
        expect(main).to_contain_text("64 tables in 2 sources")
        expect(page.locator(".tools > span.live")).to_have_text("Live")
        tree.get_by_role("treeitem", name="lake").click()
        tree.get_by_role("treeitem", name="sales").click()
        page.evaluate("() => { window.loaded = 'once'; }")
        page.go_back()
        fill(service.index, "lake", table("lake", "sales", "aa_late"))
        runs.finish_run(service.index, service.run, "ok", summary={})
        expect(tree.get_by_role("treeitem", name="aa_late")).to_be_visible()
        expect(badge).not_to_contain_text("running")
        page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="Overview").click()
        expect(main).to_contain_text("65 tables in 2 sources")
        second = runs.insert_run(service.index, "plan", trigger="request", actor="ben")
        expect(badge).to_contain_text("(1 running)")
        page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="Runs").click()
        row = page.get_by_role("row").filter(has_text=second.id)
        expect(row).to_contain_text("running")
        runs.finish_run(service.index, second, "failed", summary={}, error="no catalog")
        expect(row).to_contain_text("failed")
        assert page.evaluate("window.loaded") == "once"


def test_tabs_share_one_stream_and_another_takes_over(filled: Path, tmp_path: Path, browser: Browser) -> None:
    """With a stream in each tab, the seventh would wait: a browser keeps six connections to a server."""
    shutil.copy(filled, tmp_path / "federator.db")
    streams: list[Request] = []
    with run_service(tmp_path) as service, open_context(service, browser) as open_page:
        first = open_page("runs")
        context = first.context
        context.on("request", lambda request: streams.append(request) if request.url.endswith("/events") else None)
        expect(first.locator(".tools > span.live")).to_contain_text("Live")
        others = []
        for _ in range(7):
            others.append(context.new_page())
            others[-1].goto("/ui/runs")
            expect(others[-1].get_by_role("table", name="Runs")).to_be_visible()
            expect(others[-1].locator(".tools > span.live")).to_have_text("Live")
        assert len(streams) <= 1
        run = runs.insert_run(service.index, "plan", trigger="request", actor="ben")
        for page in (first, others[0], others[-1]):
            expect(page.get_by_role("row").filter(has_text=run.id)).to_be_visible()
        followed = len(streams)
        first.close()
        runs.finish_run(service.index, run, "ok", summary={})
        expect(others[-1].get_by_role("row").filter(has_text=run.id)).to_contain_text("ok")
        assert len(streams) == followed + 1
