"""The stages of a run on their axis, and 30 days of crawls in the overview."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import insert

from federator.store import run_stages
from federator.store import tables as t
from tests.web.conftest import Service

_DAY = 86_400


def _add_crawl(service: Service, days_ago: int, *, state: str, tables: int) -> None:
    started_at = (time.time() // _DAY - days_ago) * _DAY + 60
    run = {
        "id": f"{int(started_at * 1000):011x}-{days_ago}", "kind": "crawl", "state": state, "trigger": "schedule", "actor": "ann",
        "started_at": started_at, "finished_at": started_at + 30,
    }  # fmt: skip
    stage = {"run_id": run["id"], "stage": "crawl", "subject": "lake", "state": state, "started_at": started_at}
    with service.index.write() as connection:
        connection.execute(insert(t.run), [run])
        connection.execute(insert(t.run_stage), [{**stage, "finished_at": started_at + 30}])
        if state != "failed":
            connection.execute(
                insert(t.run_source), [{"run_id": run["id"], "source": "lake", "state": state, "tables": tables}]
            )


def test_the_stages_of_a_run_appear_while_it_goes_on(open_page: Callable[[str], Page], service: Service) -> None:
    page = open_page(f"runs/{service.run.id}")
    expect(page.locator("#run")).to_contain_text("Started")
    stages = page.get_by_role("table", name="Stages of the run").get_by_role("row")
    expect(stages).to_have_count(0)
    run_stages.start_stage(service.index, service.run.id, "crawl", "lake")
    expect(stages).to_have_count(2)
    expect(stages.nth(1)).to_contain_text("running")
    run_stages.finish_stage(
        service.index,
        service.run.id,
        "crawl",
        "lake",
        state="partial",
        detail="62 tables in 2 namespaces",
        calls=1234,
        errors=3,
    )
    run_stages.start_stage(service.index, service.run.id, "verify", "lake")
    expect(stages).to_have_count(3)
    for text in ("partial", "1,234", "3", "62 tables in 2 namespaces"):
        expect(stages.nth(1)).to_contain_text(text)
    bars = stages.get_by_role("img", name="starts after")
    expect(bars).to_have_count(2)
    # The second bar starts where the first one ends. Each event draws both again, on a longer axis.
    first, second = bars.locator("rect").evaluate_all("bars => bars.map(bar => bar.getBoundingClientRect())")
    assert second["x"] >= first["x"] + first["width"] - 2


@pytest.mark.parametrize("color_scheme", ["light", "dark"])
def test_the_overview_shows_growth_and_failed_crawls(
    open_page: Callable[[str], Page], service: Service, color_scheme: str
) -> None:
    _add_crawl(service, 20, state="ok", tables=10)
    _add_crawl(service, 3, state="partial", tables=40)
    _add_crawl(service, 1, state="failed", tables=0)
    page = open_page("")
    page.set_viewport_size({"width": 1280, "height": 900})  # a narrower page has no column for the growth
    page.emulate_media(color_scheme="dark" if color_scheme == "dark" else "light")
    lake = page.get_by_role("table", name="Sources").get_by_role("row").filter(has=page.get_by_role("link", name="lake"))
    expect(lake.get_by_role("img", name="3 crawls in 30 days, 1 partial, 1 failed")).to_be_visible()
    expect(lake.get_by_role("img", name="lake: 10 20 days ago, 40 now")).to_be_visible()
    tables = page.get_by_role("img", name="Tables: 10 20 days ago, 40 now")
    figure = page.locator(".figures > div").filter(has=tables)
    expect(figure).to_contain_text("+30 in 30 days")
    # The scale of the line, and what each day has under the pointer.
    for text in (": 10", "10 to 40", "now"):
        expect(figure.locator(".ends")).to_contain_text(text)
    tables.hover(position={"x": 1, "y": 5})
    expect(page.locator(".tip-text")).to_contain_text(": 10 tables")
    lake.get_by_role("img", name="3 crawls in 30 days, 1 partial, 1 failed").hover(position={"x": 106, "y": 5})
    expect(page.locator(".tip-text")).to_contain_text(": 1 crawl, 1 partial")
    # The same for those who do not point.
    page.get_by_text("Numbers of each day").click()
    days = page.get_by_role("table", name="Tables by day").get_by_role("row")
    expect(days.nth(4)).to_contain_text("1 partial 40")
    page.get_by_role("heading", level=1).hover()
    expect(page.locator(".tip-text")).to_be_hidden()


def test_nothing_is_green_that_is_not_well(open_page: Callable[[str], Page]) -> None:
    page = open_page("")
    # The source was read completely, and a table in it is missing.
    copy = page.get_by_role("table", name="Sources").get_by_role("row").filter(has=page.get_by_role("link", name="copy"))
    expect(copy).to_contain_text("fresh, 1 not well")
    expect(copy.locator(".st.ok")).to_have_count(0)
    page.goto("/ui/sources")
    expect(copy).to_contain_text("fresh, 1 not well")
    expect(copy.get_by_role("img", name="1 valid, 1 missing")).to_be_visible()
    expect(copy.locator(".st.ok")).to_have_count(0)
    copy.get_by_role("link", name="copy").click()
    expect(page.locator(".title .tag.warn")).to_have_text("fresh, 1 not well")
    # Each number of the source leads to its tables, and what has drifted is below them.
    expect(page.get_by_role("region", name="Drift below")).to_contain_text("properties differ: copy$sales$orders")
    page.get_by_role("link", name="1 missing").click()
    expect(page.get_by_role("region", name="Tables").get_by_role("link")).to_have_text(["parted"])
    page.go_back()
    page.get_by_role("navigation", name="Main", exact=True).get_by_role("link", name="Overview").click()
    copy.get_by_role("link", name="fresh, 1 not well").click()
    expect(page.get_by_role("region", name="Tables").get_by_role("link")).to_have_text(["parted"])
