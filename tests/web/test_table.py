"""The view of one table: the graph of declarations, columns, what is stored, and code that opens it. The tables are real."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import lance
import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from federator.model import path_key
from federator.planning.changes import Action, Change, Refusal
from federator.planning.plan import Plan
from federator.planning.reasons import Reason
from federator.planning.release import guarded_digest
from federator.store import ledger, plans
from tests.fixtures.index_content import fill, namespace, owned, table
from tests.unit.api.lance.conftest import Service, served
from tests.web.conftest import open_context
from tests.web.test_shell import _AXE, _RUN_AXE

OpenPage = Callable[[str], Page]
_EVIL = "<b>\u202egpj.exe</b>$`\"'"
_COLUMNS = '[{"name":"ID","type":"bigint"},{"name":"price","type":"string"},{"name":"label","type":"string"}]'
_TABS = ("overview", "schema", "versions", "history", "explain", "open")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """``lake$orders`` with versions, a tag, a branch and an index; copies of it in ``mem``, one with a hostile name, and in ``far``."""
    folder = tmp_path_factory.mktemp("stored")
    far = {"far": {"impl": "federator.testing:CONNECTOR", "store": f"far-{folder.name}"}}
    mirrors = {"lake-to-mem": {"from": "lake", "to": "mem"}, "mem-to-far": {"from": "mem", "to": "far"}}
    with served(folder, far, instance={"id": "test"}, mirrors=mirrors) as service:
        location = str(service.root / "orders.lance")
        for number in range(3):
            rows = pa.table(
                {"id": [number], "price": [float(number)], "items": [[{"sku": "a", "discount": 0.5, "quantity": 1}]]}
            )
            lance.write_dataset(rows, location, mode="append" if number else "create")
        for name in ("fresh", "other"):
            lance.write_dataset(pa.table({"id": [1]}), str(service.root / f"{name}.lance"))
        service.crawl("lake")
        for operation, body in (
            ("tags/create", {"tag": "nightly", "version": 2}),
            ("create_scalar_index", {"column": "id", "index_type": "BTREE", "name": "by_id"}),
            ("branches/create", {"name": "trial", "from_version": 1}),
        ):
            response = service.post(f"/v1/table/lake%24orders/{operation}", body)
            assert response.status_code == 200, response.text
        copies = [table("mem", "sales", name, location=location, schema=_COLUMNS) for name in ("orders", _EVIL)]
        fill(
            service.index,
            "mem",
            namespace("mem", "sales"),
            *copies,
            table("mem", "sales", "absent", location=str(service.root / "absent.lance")),
        )
        fill(service.index, "far", table("far", "sales", "orders", location="s3://far/orders.lance"))
        with service.index.write() as connection:
            for origin, path, target, copy in (
                ("lake", ("orders",), "mem", ("sales", "orders")), ("lake", ("orders",), "mem", ("sales", _EVIL)),
                ("mem", ("sales", "orders"), "far", ("sales", "orders")), ("mem", ("sales", _EVIL), "far", ("sales", "lost")),
            ):  # fmt: skip
                entry = owned(
                    origin, path_key(path), target, path_key(copy), mirror=f"{origin}-to-{target}", updated_at=time.time()
                )
                ledger.upsert_entry(connection, entry)
            target = table("mem", "sales", "fresh", location=str(service.root / "fresh.lance"))
            change = Change(Action.DECLARE_TABLE, "mem", "sales$fresh", "lake", "fresh", "new at the origin", after=target)
            refusal = Refusal(Reason.NAME_TAKEN, "mem", "sales$other", "other", "the name is taken")
            plan = Plan("lake-to-mem", "d", 1, 1, (change,), (refusal,))
            plans.save_plan(
                connection, digest=plan.digest, mirror=plan.mirror, run_id="r", state="ready", body=json.dumps(plan.to_json()),
                guarded=guarded_digest(plan),
            )  # fmt: skip
        yield service


@pytest.fixture
def open_page(stored: Service, browser: Browser) -> Iterator[OpenPage]:
    with open_context(stored, browser) as open_address:  # type: ignore[arg-type]  # only its address is used
        yield open_address


def _address(*path: str, tab: str = "overview") -> str:
    return f"t/{quote(path_key(path), safe='')}?tab={tab}"


def _graph(page: Page) -> Locator:
    return page.get_by_role("region", name="Origins and copies")


def test_the_graph_leads_from_the_origin_to_the_copies_of_copies(open_page: OpenPage) -> None:
    graph = _graph(open_page(_address("mem", "sales", "orders")))
    expect(graph).to_contain_text("1 origin, 4 copies by 2 mirrors")
    origin = graph.get_by_role("list", name="From origins to copies").locator("> li")
    expect(origin).to_have_count(1)
    expect(origin.locator("> .card")).to_contain_text("lake")
    copies = origin.locator("> ul > li")
    expect(copies).to_have_count(2)
    here = copies.filter(has=graph.page.locator("> [aria-current=true]"))
    expect(here.locator("> .card")).to_contain_text("this")
    expect(here.locator("> .via")).to_contain_text("lake-to-mem")
    expect(here.locator("> .via")).to_contain_text("in sync")
    expect(here.locator("> ul > li > .via")).to_contain_text("no plan yet")
    expect(here.locator("> ul > li > .card")).to_contain_text("far")
    lost = copies.filter(has_not=graph.page.locator("> [aria-current=true]")).locator("> ul > li > .card")
    expect(lost).to_contain_text("not in its catalog")


def test_a_copy_that_a_plan_would_make_is_announced_and_leads_nowhere(open_page: OpenPage) -> None:
    graph = _graph(open_page(_address("lake", "fresh")))
    planned = graph.locator("li.planned")
    expect(planned.locator("> .via")).to_contain_text("pending")
    expect(planned.locator("> .card")).to_contain_text("planned")
    expect(planned.locator("> .card")).to_contain_text("sales › fresh")
    expect(planned.get_by_role("link")).to_have_text(["lake-to-mem"])
    refused = _graph(open_page(_address("lake", "other"))).locator("li.planned")
    expect(refused.locator("> .card")).to_contain_text("not copied")
    expect(refused.locator("> .via")).to_contain_text(Reason.NAME_TAKEN.value.replace("_", " "))


def test_the_graph_is_walked_by_keyboard(open_page: OpenPage) -> None:
    page = open_page(_address("lake", "orders"))
    graph = _graph(page)
    expect(graph).to_contain_text("4 copies")
    graph.get_by_role("group", name="Origins and copies").focus()
    walked = []
    for _ in range(8):
        page.keyboard.press("Tab")
        walked.append(page.evaluate("document.activeElement.closest('.flow') && document.activeElement.pathname"))
    assert walked.count("/ui/mirrors/lake-to-mem") == 2
    assert walked.count("/ui/t/far%24sales%24orders") == 1
    assert all(walked)
    page.keyboard.press("Shift+Tab")
    target = page.evaluate("document.activeElement.pathname")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(re.escape(target) + "$"))


def test_hostile_names_stay_text_and_lead_to_their_table(open_page: OpenPage) -> None:
    page = open_page(_address("lake", "orders"))
    evil = _graph(page).get_by_role("link").filter(has_text="<b>")
    expect(evil).to_contain_text("\\u202egpj.exe")
    assert "\u202e" not in evil.inner_text()
    expect(evil.locator("bdi").first).to_be_visible()
    expect(_graph(page).locator("b")).to_have_count(0)
    evil.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("<b>\\u202egpj.exe</b>$")
    for tab in _TABS[1:]:
        page.get_by_role("tablist").locator(f"[data-tab={tab}]").click()
    expect(page.get_by_role("region", name="pylance")).to_contain_text("\\u202egpj.exe</b>$")
    page.get_by_role("tab", name="Versions").click()
    expect(page.get_by_role("table", name="Versions").locator("tbody tr").first).to_contain_text("4")


def test_columns_stand_side_by_side_with_their_differences(open_page: OpenPage) -> None:
    page = open_page(_address("mem", "sales", "orders", tab="schema"))
    expect(page.get_by_role("tab", name="Schema")).to_contain_text("3 differ")
    columns = page.get_by_role("table", name="Columns")
    expect(columns.locator("tbody tr").first).to_have_text(re.compile("no$"))
    expect(columns.locator("tr", has_text="price")).to_contain_text("another type")
    expect(columns.locator("tr", has_text="label")).to_contain_text("declared, not stored")
    items = columns.locator("tr", has_text="items")
    expect(items).to_contain_text("stored, not declared")
    full = items.get_by_text("quantity").last
    expect(full).to_be_hidden()
    items.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(full).to_be_visible()


def test_columns_that_a_copy_does_not_declare_are_named(open_page: OpenPage) -> None:
    columns = open_page(_address("lake", "orders", tab="schema")).get_by_role("table", name="Columns")
    expect(columns.locator("tr", has_text="price")).to_contain_text("all 2")
    items = columns.locator("tr", has_text="items")
    expect(items).to_contain_text("0 of 2")
    expect(items.get_by_role("link", name="mem$sales$orders")).to_have_attribute("href", "/ui/t/mem%24sales%24orders")


def test_what_is_stored_is_read_from_the_table_itself(open_page: OpenPage) -> None:
    page = open_page(_address("lake", "orders", tab="versions"))
    versions = page.get_by_role("table", name="Versions").locator("tbody tr")
    expect(versions).to_have_count(4)
    expect(versions.first).to_contain_text("4")
    expect(versions.nth(2)).to_contain_text("nightly")
    expect(page.get_by_role("table", name="Tags").locator("tbody tr")).to_have_text(re.compile("nightly.*2.*main", re.DOTALL))
    expect(page.get_by_role("table", name="Branches").locator("tbody tr")).to_contain_text("main at version 1")
    expect(page.get_by_role("table", name="Branches").locator("tbody time")).to_have_text(re.compile(r"^\d+ (s|min|h) ago$"))
    expect(page.get_by_role("table", name="Indices").locator("tbody tr")).to_contain_text("by_id")
    expect(page.get_by_role("table", name="Indices").locator("tbody tr")).to_contain_text("3")
    expect(page.get_by_role("button", name="Stop reading")).to_be_hidden()


def test_a_table_that_cannot_be_opened_says_so(stored: Service, browser: Browser) -> None:
    # The failed requests are errors of the console, so this context does not watch it.
    with browser.new_context(base_url=stored.url) as context:
        page = context.new_page()
        page.goto(f"/ui/{_address('mem', 'sales', 'absent', tab='versions')}")
        region = page.get_by_role("region", name="Versions")
        expect(region.get_by_role("alert")).to_contain_text("absent")
        expect(region.get_by_role("button", name="Read again")).to_be_visible()


def test_reading_can_be_stopped_and_begun_again(stored: Service, browser: Browser) -> None:
    with browser.new_context(base_url=stored.url) as context:
        page = context.new_page()
        waiting: list[Any] = []
        page.route("**/v1/table/*/version/list*", lambda route: waiting.append(route))
        page.goto(f"/ui/{_address('lake', 'orders', tab='versions')}")
        expect(page.get_by_role("table", name="Tags")).to_be_visible()
        page.get_by_role("button", name="Stop reading").click()
        region = page.get_by_role("region", name="Versions")
        expect(region).to_contain_text("Reading was stopped")
        page.unroute("**/v1/table/*/version/list*")
        region.get_by_role("button", name="Read again").click()
        expect(page.get_by_role("table", name="Versions").locator("tbody tr")).to_have_count(4)


def test_the_code_of_the_page_opens_the_table(open_page: OpenPage, stored: Service) -> None:
    page = open_page(_address("lake", "orders", tab="explain"))
    page.get_by_role("tab", name="Explain").press("ArrowRight")
    code = page.get_by_role("region", name="pylance").locator("pre").inner_text()
    assert stored.url in code
    scope: dict[str, Any] = {}
    exec(compile(code, "page", "exec"), scope)
    assert scope["dataset"].count_rows() == 3
    expect(page.get_by_role("region", name="DuckDB").get_by_role("button", name="Copy the code for DuckDB")).to_be_visible()
    expect(page.get_by_role("region", name="Spark")).to_contain_text("spark.table(")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_each_tab_is_accessible_and_fits(
    stored: Service, browser: Browser, tmp_path_factory: pytest.TempPathFactory, scheme: str, width: int
) -> None:
    pictures, findings = tmp_path_factory.mktemp(f"table-{scheme}-{width}"), {}
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    with open_context(stored, browser, **options) as open_page:  # type: ignore[arg-type]  # only its address is used
        for path in (("mem", "sales", "orders"), ("mem", "sales", _EVIL)):
            for tab in _TABS:
                page = open_page(_address(*path, tab=tab))
                expect(page.get_by_role("tab", selected=True)).to_have_attribute("data-tab", tab)
                expect(page.get_by_text("being opened")).to_have_count(0)
                expect(page.locator("#tabpanel .panel").first).to_be_visible()
                page.evaluate(_AXE.read_text(encoding="utf-8"))
                problems = page.evaluate(_RUN_AXE)
                wide = "['html', 'main'].filter(n => { const e = document.querySelector(n); return e.scrollWidth > e.clientWidth; })"
                problems += [f"{part} scrolls sideways" for part in page.evaluate(wide)]
                page.screenshot(path=pictures / f"{tab}-{len(path[-1])}.png", full_page=True)
                if problems:
                    findings[path[-1], tab] = problems
    assert findings == {}
