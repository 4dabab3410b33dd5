"""The service on its own port, over an index without Spark, and a real Chromium."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from federator.api.app import create_app
from federator.model import ROOT, Coverage, TableRecord, failed_evidence
from federator.model.drift import Drift, DriftKind
from federator.planning.changes import Action, Change
from federator.planning.holds import Binds, Hold
from federator.planning.measurement import Measurement
from federator.planning.plan import Plan
from federator.planning.release import guarded_digest
from federator.settings import parse_settings
from federator.store import Connection, Index, coverage, open_index, plans, revisions, runs, verifications
from federator.store import tables as t
from federator.store.leases import acquire_lease
from tests.fixtures.chromium import CHROMIUM
from tests.fixtures.index import new_index
from tests.fixtures.index_content import fill, namespace, table
from tests.fixtures.serving import serve_app

_NEXT_FRAME = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
_SCHEMA = '[{"name":"id","type":"bigint"},{"name":"price","type":"double"}]'


@dataclass
class Service:
    """A served index with what the tests look for in it."""

    url: str
    index: Index
    plan: str
    run: runs.RunHandle


def _fill(index: Index) -> None:
    orders = table(
        "lake",
        "sales",
        "orders",
        owner="ann",
        properties={"team": "ops", "api_key": "hunter2"},
        schema=_SCHEMA,
        doc="What was <b>sold</b>",
    )
    fill(
        index, "lake", namespace("lake", "sales"), namespace("lake", "hr"), orders,
        table("lake", "sales", "parted", owner='Joe "J" Doe'),
        *(table("lake", "sales", f"events_{number:03}", owner="bob") for number in range(60)),
    )  # fmt: skip
    other = table("copy", "sales", "orders", owner="ann", properties={"team": "web"})
    fill(index, "copy", namespace("copy", "sales"), other, table("copy", "sales", "parted", location="s3://other/parted"))
    denied = failed_evidence(15, "denied by the metastore")
    with acquire_lease(index, "source:lake") as lease:
        draft = revisions.begin_draft(index, lease, "lake", "run-2", 0.0)
        with index.write() as connection:
            coverage.write_coverage(connection, draft, [Coverage("lake", ROOT), Coverage("lake", ("hr",), denied, denied)], {})
        values = {"state": "partial", "message": "1 of 3 namespaces failed"}
        revisions.publish_draft(index, lease, draft, added=0, changed=0, removed=0, values=values)
    with index.write() as connection:
        location = "s3://lake/sales/orders.lance"
        checked = {
            "canonical": location, "location": location, "state": "valid", "message": None, "version": 3, "rows": 12_345,
            "fragments": 2, "schema": _SCHEMA, "checked_at": time.time(), "checked_through": "lake", "access": "",
        }  # fmt: skip
        verifications.save_verifications(connection, [checked])
        missing = {
            "canonical": "s3://other/parted",
            "location": "s3://other/parted",
            "state": "missing",
            "message": "no manifest",
        }
        verifications.save_verifications(connection, [{**checked, **missing, "version": None, "rows": None, "schema": None}])
        drift = Drift(DriftKind.PROPERTIES_DIFFER, "copy", "copy$sales$orders", "lake$sales$orders", "team")
        insert_drift(connection, drift)


def insert_drift(connection: Connection, item: Drift) -> None:
    now = time.time()
    row = {
        "kind": item.kind.value, "subject": item.subject, "other": item.other, "severity": item.severity.value,
        "source": item.source, "detail": item.detail, "first_seen": now, "last_seen": now,
    }  # fmt: skip
    connection.execute(t.drift.insert(), [row])


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web")
    index = new_index(folder)
    _fill(index)
    index.close()
    return folder / "federator.db"


@pytest.fixture
def service(filled: Path, tmp_path: Path) -> Iterator[Service]:
    shutil.copy(filled, tmp_path / "federator.db")
    with run_service(tmp_path) as service:
        yield service


@pytest.fixture(scope="module")
def shared(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all tests of a module that change nothing."""
    folder = tmp_path_factory.mktemp("shared")
    shutil.copy(filled, folder / "federator.db")
    with run_service(folder) as service:
        yield service


@contextmanager
def run_service(folder: Path, **serve: object) -> Iterator[Service]:
    """Serve the index of a folder on a free port. ``serve``: keys of the section of that name."""
    raw = {
        "instance": {"id": "test"},
        "sources": {
            name: {"impl": "federator.testing:CONNECTOR", "store": f"web-{name}", **more}
            for name, more in {"lake": {}, "copy": {"schedule": "0 4 * * *"}}.items()
        },
        "mirrors": {"nightly": {"from": "lake", "to": "copy", "schedule": "@every 15m"}},
        "serve": serve,
    }
    index = open_index("sqlite:///federator.db", base=folder)
    gone = Change(
        Action.DEREGISTER_TABLE, "copy", "sales$gone", "lake", "sales$gone", "gone at the origin",
        before=TableRecord("copy", ("sales", "gone"), "s3://lake/gone"),
    )  # fmt: skip
    new = Change(
        Action.DECLARE_TABLE, "copy", "sales$new", "lake", "sales$new", "new at the origin",
        after=TableRecord("copy", ("sales", "new"), "s3://lake/new"),
    )  # fmt: skip
    hold_ = Hold(
        "max_delete_percent", "4 of 9 tables removed or moved within 24 h, max_delete_percent is 20", Binds.DESTRUCTIVE
    )
    guards = (
        Measurement("max_changes", 2, 10_000), Measurement("max_delete_percent", 4, 20.0, 9),
        Measurement("namespace_delete_percent", 1, 20.0, 12, "sales"), Measurement("never_empty", 8),
    )  # fmt: skip
    plan = Plan("nightly", "d", 1, 1, (gone, new), holds=(hold_,), guards=guards)
    with index.write() as connection:
        body = json.dumps(plan.to_json())
        plans.save_plan(
            connection, digest=plan.digest, mirror="nightly", run_id="r", state="held", body=body, guarded=guarded_digest(plan)
        )
    run = runs.insert_run(index, "crawl", trigger="request", actor="ann")
    with serve_app(create_app(parse_settings(raw, folder / "federator.toml")), force_exit=True) as url:
        yield Service(url, index, plan.digest, run)
    index.close()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Closed after the package's last test: Playwright has an event loop in this thread, where later tests start their own."""
    expect.set_options(timeout=30_000)  # a busy machine needs more than the usual 5 s
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(service: Service, browser: Browser) -> Iterator[Callable[[str], Page]]:
    """Opens the page at an address below ``/ui/``; whatever a browser complains about fails the test."""
    with open_context(service, browser) as open_address:
        yield open_address


@contextmanager
def open_context(service: Service, browser: Browser, **options: Any) -> Iterator[Callable[[str], Page]]:
    """Open addresses in a new browser context. Errors and warnings of the console, and violations of the policy, fail the test."""
    # Drawing the frames of animations takes a seventh of a test's CPU time.
    defaults = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "reduce"}
    context = browser.new_context(base_url=service.url, **(defaults | options))
    context.set_default_timeout(60_000)
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)

    def open_address(address: str) -> Page:
        page.goto(f"/ui/{address}")
        return page

    try:
        yield open_address
    finally:
        # Also after a failure: the end of the service waits for the page's connections.
        context.close()
    assert complaints == []


def track_open_requests(page: Page) -> set[Request]:
    """Return a set that always has the requests of the page without a complete response. Streams of events never complete."""
    open_requests: set[Request] = set()
    page.on("request", lambda request: None if request.url.endswith("/events") else open_requests.add(request))
    page.on("requestfinished", lambda request: open_requests.discard(request))
    page.on("requestfailed", lambda request: open_requests.discard(request))
    return open_requests


def wait_until_loaded(page: Page, open_requests: set[Request]) -> None:
    """Wait for the tree and the counts, which follow the heading. axe reports elements that are replaced while it reads them."""
    page.evaluate(_NEXT_FRAME)
    while open_requests:
        page.evaluate(_NEXT_FRAME)
    page.evaluate(_NEXT_FRAME)
