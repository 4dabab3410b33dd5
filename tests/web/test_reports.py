"""Reports: made from the page, listed, and shown in place. Their files are written by the writers of the product."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from federator.pipeline.reports.files import write_json
from federator.pipeline.reports.sections import Report, Section
from federator.store import reports, requests, runs
from federator.store.reports import ReportFile, StoredReport
from tests.web.conftest import Service

OpenPage = Callable[[str], Page]
_EVIL = "<img src=x onerror=alert(1)>"


def store(service: Service, folder: Path, run: runs.RunHandle, *, formats: tuple[str, ...] = ("json", "csv")) -> None:
    """Write a report of growth as the worker does, and record it."""
    sections = (
        Section("tiles", "", ("tables", "bytes", "first_at"), ((1234, 5_000_000, time.time() - 86_400),), 1),
        Section(
            "bars", "Tables by source", ("source", "tables", "bytes", "namespaces_with_tables"),
            (("lake", 90, 1000, 7), (_EVIL, 30, None, 2)), 2,
        ),
        Section(
            "lines", "Tables a day", ("day", "source", "tables"),
            (("2026-11-23", "lake", 50), ("2026-11-24", "lake", 90), ("2026-11-24", "copy", 30)), 3,
        ),
        Section("table", "The largest namespaces", ("namespace", "tables"), (("lake$sales", 62),), 75),
        Section("table", "Nothing here", ("namespace",), (), 0),
    )  # fmt: skip
    files = []
    if "json" in formats:
        write_json(Report("growth", time.time(), sections, 4321, ["growth.csv"]), folder / "report.json")
        files.append(ReportFile("report.json", (folder / "report.json").stat().st_size))
    (folder / "growth.csv").write_text("source,tables\r\nlake,90\r\n", encoding="utf-8")
    files.append(ReportFile("growth.csv", (folder / "growth.csv").stat().st_size))
    with service.index.write() as connection:
        reports.insert_report(
            connection, StoredReport(run.id, "growth", "weekly", "ann", time.time(), str(folder), tuple(files))
        )


def test_a_report_is_made_from_the_page_and_shown_there(open_page: OpenPage, service: Service, tmp_path: Path) -> None:
    page = open_page("reports")
    expect(page.get_by_text("No report yet")).to_be_visible()
    page.get_by_role("combobox", name="Report").select_option("Growth")
    page.get_by_role("button", name="Make now").click()
    line = page.locator("#made")
    expect(line).to_contain_text("It starts when the worker is free")
    with service.index.write() as connection:
        (queued,) = requests.list_queued(connection, requests.RUN_KINDS)
        assert (queued.kind, queued.argument) == ("report", {"report": "growth"})
        requests.set_request_state(connection, queued.id, requests.RUNNING, run_id=service.run.id)
    store(service, tmp_path, service.run)
    runs.finish_run(service.index, service.run, "ok", summary={})
    line.get_by_role("link", name="open the report").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Growth")
    expect(page.locator(".figures").first).to_contain_text("1,234")
    expect(page.locator(".figures").first).to_contain_text("5.0 MB")
    bars = page.get_by_role("table", name="Tables by source")
    expect(bars.get_by_role("row").nth(2)).to_contain_text(_EVIL)
    shares = bars.locator("rect")
    assert [shares.nth(number).get_attribute("width") for number in range(2)] == ["100.0%", "33.3%"]
    chart = page.get_by_role("img", name="Tables a day, from 2026-11-23 to 2026-11-24; at most 90")
    expect(chart.locator("path")).to_have_count(2)
    expect(page.get_by_role("region", name="The largest namespaces")).to_contain_text("the first 1 of 75")
    expect(page.get_by_role("region", name="Nothing here")).to_contain_text("Nothing to show")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save growth.csv").click()
    assert download.value.path().read_text(encoding="utf-8") == "source,tables\nlake,90\n"
    page.go_back()
    expect(page.get_by_role("table", name="Reports").get_by_role("link", name="weekly (Growth)")).to_be_visible()


def test_a_report_without_figures_says_why(open_page: OpenPage, service: Service, tmp_path: Path) -> None:
    store(service, tmp_path, service.run, formats=("csv",))
    page = open_page(f"reports/{service.run.id}")
    expect(page.get_by_text("The formats of this report do not include json")).to_be_visible()
    expect(page.get_by_role("button", name="Save growth.csv")).to_be_visible()


@pytest.mark.parametrize("width", [1200, 320])
def test_a_report_fits_and_is_read_without_a_mouse(open_page: OpenPage, service: Service, tmp_path: Path, width: int) -> None:
    store(service, tmp_path, service.run)
    page = open_page(f"reports/{service.run.id}")
    page.set_viewport_size({"width": width, "height": 800})
    expect(page.get_by_role("table", name="Tables by source")).to_be_visible()
    assert (
        page.evaluate("""[...document.querySelectorAll('main, main .scroll, main .acts')]
        .filter(each => each.scrollWidth > each.clientWidth).map(each => each.outerHTML)""")
        == []
    )
