"""Finding a table among thousands: the tree, its filter, and the palette. One service serves all tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from federator.store import open_index
from tests.fixtures.index_content import fill, namespace, table
from tests.web.conftest import Service, open_context, run_service

_SIBLINGS = 20_000


@pytest.fixture(scope="module")
def large(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("large")
    shutil.copy(filled, folder / "federator.db")
    index = open_index("sqlite:///federator.db", base=folder)
    siblings = (table("lake", "many", f"item_{number:05}", location=None) for number in range(_SIBLINGS))
    odd = (table("lake", "sales", name, location="s3://lake/odd") for name in ("\u202eselas\u202c_tmp", "ord\u0435rs", "отчёт"))
    fill(index, "lake", namespace("lake", "many"), *odd, *siblings)
    index.close()
    with run_service(folder) as service:
        yield service


@pytest.fixture
def open_page(large: Service, browser: Browser) -> Iterator[Callable[[str], Page]]:
    with open_context(large, browser) as open_address:
        yield open_address


def test_a_long_namespace_is_paged_and_only_rows_in_sight_are_in_the_document(open_page: Callable[[str], Page]) -> None:
    page = open_page("sources")
    tree = page.get_by_role("tree")
    tree.get_by_role("treeitem", name="lake").click()
    tree.get_by_role("treeitem", name="many").click()
    expect(tree.get_by_role("treeitem", name="item_00000")).to_be_visible()
    tree.focus()
    last = tree.get_by_role("treeitem", name=f"item_{_SIBLINGS - 1:05}")
    for _ in range(4):
        page.keyboard.press("End")
        page.wait_for_timeout(300)
    page.keyboard.press("End")
    for _ in range(8):
        page.keyboard.press("PageUp")
    page.keyboard.press("PageDown")
    assert page.locator("[role=treeitem]").count() < 120
    page.get_by_role("searchbox", name="Filter the tree").fill(f"item_{_SIBLINGS - 1:05}")
    expect(last).to_be_visible()
    expect(tree.get_by_role("treeitem")).to_have_count(3)


def test_the_filter_finds_what_is_not_loaded(open_page: Callable[[str], Page]) -> None:
    page = open_page("sources")
    page.get_by_role("searchbox", name="Filter the tree").fill("item_0233")
    by_role = page.get_by_role("treeitem")
    expect(by_role).to_have_count(12)
    page.get_by_role("treeitem", name="item_02333").click()
    expect(page.get_by_role("heading", level=1, name="item_02333")).to_be_visible()


@pytest.mark.parametrize(("text", "route", "expected"), [("item_0012", "suggest", "item_00120"), ("#", "runs", "Plan for ")])
def test_enter_in_the_palette_opens_the_first_that_is_found(
    open_page: Callable[[str], Page], text: str, route: str, expected: str
) -> None:
    """Also if one presses it before anything is found."""
    page, waiting = open_page("sources"), list[Route]()
    expect(page.get_by_role("table", name="Sources")).to_be_visible()
    page.keyboard.press("Control+k")
    page.route(f"**/api/v1/{route}?*", lambda request: waiting.append(request))
    with page.expect_request(f"**/api/v1/{route}?*"):
        page.keyboard.type(text)
        page.keyboard.press("Enter")
    palette = page.get_by_role("dialog", name="Search or jump to")
    expect(palette).to_be_visible()
    for request in waiting:
        request.continue_()
    expect(palette).to_be_hidden()
    expect(page.get_by_role("heading", level=1)).to_contain_text(expected)


def test_the_palette_leads_to_tables_views_and_commands_by_keyboard(open_page: Callable[[str], Page]) -> None:
    page = open_page("sources")
    expect(page.get_by_role("table", name="Sources")).to_be_visible()
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Search or jump to")
    page.keyboard.type("item_0012")
    expect(palette.get_by_role("option").first).to_contain_text("item_00120")
    page.keyboard.press("ArrowDown")
    expect(palette.get_by_role("option", selected=True)).to_contain_text("item_00121")
    page.keyboard.press("Enter")
    expect(palette).to_be_hidden()
    expect(page.get_by_role("heading", level=1, name="item_00121")).to_be_focused()
    page.keyboard.press("/")
    expect(palette.get_by_role("option").first).to_contain_text("item_00121")
    page.keyboard.type("pause sync")
    expect(palette.get_by_role("option", name="Pause the job sync:nightly")).to_be_visible()
    for _ in "pause sync":
        page.keyboard.press("Backspace")
    page.keyboard.type("> crawl copy")
    expect(palette.get_by_role("option", selected=True)).to_have_text("Crawl copy")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Crawl copy requested")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("p")
    expect(page.get_by_role("heading", level=1, name="Plans")).to_be_visible()


@pytest.mark.parametrize(
    ("name", "shown"),
    [("\u202eselas\u202c_tmp", "\\u202eselas\\u202c_tmp"), ("ord\u0435rs", "ord\\u0435rs"), ("отчёт", "отчёт")],
    ids=["reading order", "look-alike", "another alphabet"],
)
def test_signs_that_deceive_are_written_out(open_page: Callable[[str], Page], name: str, shown: str) -> None:
    page = open_page(f"t/{quote(f'lake$sales${name}', safe='')}")
    expect(page.get_by_role("heading", level=1)).to_have_text(shown)


@pytest.mark.parametrize(
    ("address", "content"),
    [
        ("", "20,067 tables in 2 sources"), ("t/lake%24many?kind=namespace", "item_00000"), ("search?q=item", "more than 1,000"),
        ("datasets", "s3://lake"), ("t/lake%24many%24item_19999", "unverified"), ("changes?from=-1d", "item_"),
    ],
)  # fmt: skip
def test_views_over_thousands_of_tables_stay_small(open_page: Callable[[str], Page], address: str, content: str) -> None:
    page = open_page(address)
    expect(page.locator("main")).to_contain_text(content)
    assert page.evaluate("document.querySelectorAll('*').length") <= 1_500
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
