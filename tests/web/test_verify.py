"""Verification of a table from its page: real tables, with the real runner of a worker beside the service."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from playwright.sync_api import Browser, expect

from federator.store import requests
from federator.worker.runner import RequestRunner
from tests.unit.api.lance.conftest import CALLER, Service, served
from tests.web.conftest import open_context


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Service]:
    with served(tmp_path, {}, instance={"id": "test"}) as service:
        lance.write_dataset(pa.table({"id": [1, 2, 3]}), str(service.root / "orders.lance"))
        service.crawl("lake")
        yield service


@contextmanager
def runner(service: Service) -> Iterator[None]:
    """Executes the short requests, as the worker's loop does."""
    executing, stop = RequestRunner(service.settings, service.index), threading.Event()

    def loop() -> None:
        while not stop.wait(0.1):
            with service.index.read() as connection:
                queued = requests.list_queued(connection, requests.SHORT_RUN_KINDS, limit=1)
            for request in queued:
                executing.request = request
                executing.execute(request)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_table_is_verified_now_and_its_page_shows_what_was_found(stored: Service, browser: Browser) -> None:
    with open_context(stored, browser) as open_address:  # type: ignore[arg-type]  # only its address is used
        page = open_address("t/lake%24orders")
        expect(page.get_by_role("region", name="Verification")).to_contain_text("Not verified yet")
        page.get_by_role("button", name="Verify now").click()
        expect(page.locator("#verifying")).to_contain_text("It starts when the worker is free")
        with runner(stored):
            expect(page.locator("#announcer")).to_have_text("Verified just now: valid", timeout=60_000)
            expect(page.get_by_role("button", name="Verify now")).to_be_focused()
            expect(page.locator(".figures")).to_contain_text("Rows3")
            expect(page.locator("#verifying")).to_be_empty()  # a run that is ok is no table that is valid
            expect(page.locator(".title")).to_contain_text("valid")
            expect(page.locator(".sub")).to_contain_text(re.compile(r"verified \d+ s ago"))
            shutil.rmtree(stored.root / "orders.lance")
            page.get_by_role("button", name="Verify now").click()
            expect(page.locator("#announcer")).to_have_text("Verified just now: missing", timeout=60_000)
            expect(page.get_by_text("The location is missing.")).to_be_visible()


def test_a_viewer_reads_which_role_the_button_needs(stored: Service, browser: Browser) -> None:
    headers = {CALLER: "viewer lake"}
    with open_context(stored, browser, extra_http_headers=headers) as open_address:  # type: ignore[arg-type]
        page = open_address("t/lake%24orders")
        button = page.get_by_role("button", name="Verify now")
        expect(button).to_be_disabled()
        expect(button).to_have_attribute("title", "Needs the role operator; you have the role viewer")
