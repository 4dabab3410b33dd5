"""The page of sources: how fresh they are, why one failed, and crawls that are requested from it."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect
from sqlalchemy import update

from federator.model import Coverage, carried_evidence
from federator.store import coverage, requests, revisions, run_stages, runs
from federator.store import tables as t
from federator.store.leases import acquire_lease
from tests.web.conftest import Service

OpenPage = Callable[[str], Page]


def test_sources_say_how_fresh_they_are_and_what_was_not_read(open_page: OpenPage) -> None:
    page = open_page("sources")
    row = page.get_by_role("table", name="Sources").get_by_role("row").filter(has_text="lake")
    expect(row).to_contain_text("partial")
    expect(row).to_contain_text("1 of 3 namespaces failed")
    row.get_by_role("link", name="lake").click()
    expect(page.get_by_role("heading", name="lake", exact=True)).to_be_visible()
    expect(page.get_by_role("table", name="Not read completely")).to_contain_text("denied by the metastore")


def test_a_source_is_crawled_and_what_was_carried_is_read_again(open_page: OpenPage, service: Service) -> None:
    whole = carried_evidence(1)
    with acquire_lease(service.index, "source:copy") as lease:
        draft = revisions.begin_draft(service.index, lease, "copy", "run-2", 0.0)
        with service.index.write() as connection:
            coverage.write_coverage(connection, draft, [Coverage("copy", ("sales",), whole, whole)], {})
        revisions.publish_draft(service.index, lease, draft, added=0, changed=0, removed=0, values={"state": "ok"})
    page = open_page("t/copy")
    expect(page.locator("main")).to_contain_text("1: the change feed did not name them")
    for button in ("Crawl", "Crawl in full"):
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("Crawl requested")
        page.get_by_role("status").evaluate("node => { node.textContent = ''; }")
    with service.index.read() as connection:
        asked = [each.argument for each in requests.list_queued(connection, requests.RUN_KINDS)]
    assert asked == [{"sources": ["copy"]}, {"sources": ["copy"], "full": True}]


def test_the_reason_of_a_failed_source_is_shown_once_and_in_red(open_page: OpenPage, service: Service) -> None:
    message = "copy: 127.0.0.1:9083 cannot be reached hint: check the uri"
    with service.index.write() as connection:
        failed = update(t.source).where(t.source.c.name == "copy").values(state="failed", message=message)
        connection.execute(failed)
    crawl = runs.insert_run(service.index, "crawl", trigger="schedule", actor="worker")
    run_stages.start_stage(service.index, crawl.id, "crawl", "copy")
    run_stages.finish_stage(service.index, crawl.id, "crawl", "copy", state="failed", detail="refused", calls=1, errors=1)
    runs.finish_run(service.index, crawl, "failed", summary={})
    page = open_page("t/copy")
    note = page.locator("main .note.bad")
    expect(note).to_contain_text("copy could not be read: 127.0.0.1:9083 cannot be reached. Check the uri. Nothing is")
    expect(page.locator("main").get_by_text("cannot be reached")).to_have_count(1)
    expect(note).to_contain_text("This began")
    expect(note).to_contain_text("Tried again in")
    # The age of each number that the newest crawl could not read.
    tables = page.locator(".figures > div").filter(has_text="Tables")
    expect(tables.locator(".tone-warn").first).to_contain_text("as of")
    note.get_by_role("link", name=crawl.id).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(crawl.id)
    page.get_by_role("link", name="0 of 2 sources fresh").click()
    row = page.get_by_role("table", name="Sources").get_by_role("row").filter(has_text="127.0.0.1:9083")
    expect(row).to_contain_text(re.compile(r"for \d+ (s|min)"))
    row.get_by_role("link", name="Its runs").click()
    expect(page.get_by_role("table", name="Runs").get_by_role("link", name=crawl.id)).to_be_visible()


def test_the_overview_says_when_a_source_is_crawled_next(open_page: OpenPage) -> None:
    page = open_page("")
    sources = page.get_by_role("table", name="Sources").get_by_role("row")
    expect(sources.filter(has=page.get_by_role("link", name="copy"))).to_contain_text(" in ")
    expect(sources.filter(has=page.get_by_role("link", name="lake"))).to_contain_text("by hand")
    expect(sources.filter(has=page.get_by_role("link", name="lake")).locator("time.tone-warn")).to_be_visible()


def test_the_failure_of_a_requested_crawl_is_announced(open_page: OpenPage, service: Service) -> None:
    page = open_page("t/copy")
    page.get_by_role("button", name="Crawl", exact=True).click()
    announcement = page.locator("#announcer")
    expect(announcement).to_contain_text("Crawl requested. It starts when the worker is free.")
    page.evaluate("() => { document.querySelector('main h1').dataset.shown = 'before'; }")
    with service.index.write() as connection:
        (queued,) = requests.list_queued(connection, requests.RUN_KINDS)
        requests.set_request_state(connection, queued.id, requests.RUNNING, run_id=service.run.id)
    # A catalog that did not respond fails its stage. The run itself has no error.
    run_stages.start_stage(service.index, service.run.id, "crawl", "copy")
    detail = "copy cannot be reached"
    run_stages.finish_stage(service.index, service.run.id, "crawl", "copy", state="failed", detail=detail, calls=1, errors=1)
    runs.finish_run(service.index, service.run, "failed", summary={})
    expect(announcement).to_contain_text("failed copy cannot be reached")
    expect(announcement.locator(".tone-ok")).to_have_count(0)
    expect(page.locator("main h1[data-shown]")).to_have_count(0)  # the view was read again
    announcement.get_by_role("link", name="Open the run").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(service.run.id)
