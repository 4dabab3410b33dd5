"""The page's tree with 5,000 and 100,000 siblings in Chromium: the first view, interaction, and paging to the end."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from federator.api.app import create_app
from federator.settings import parse_settings
from federator.store import Index, migrations, open_index
from tests.bench.measure import Row, limit
from tests.fixtures.chromium import CHROMIUM
from tests.fixtures.index_content import fill, namespace, table
from tests.fixtures.serving import serve_app

_SIZES = (5_000, 100_000)
_FILL = 5_000
# Of the tree in the page.
_PAGE = 1_000
_REPEATS = 40
_KEY_OF_TREE = "federator-tree"
_INTERACTION_BUDGET_MS = 100.0

# From the event until the frame after it was drawn, in milliseconds. A frame that follows at once takes up to 17 ms by itself.
_UNTIL_FRAME = """([id, key, text]) => new Promise(done => {
    const element = document.getElementById(id), began = performance.now();
    if (key) element.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
    else { element.value = text; element.dispatchEvent(new Event("input", {bubbles: true})); }
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
})"""
_ROWS_ARE_SHOWN = """async () => {
    while (document.querySelectorAll('#tree [aria-level="3"]').length < 10) await new Promise(requestAnimationFrame);
    return performance.now();
}"""
# Scroll to the end of what is loaded until nothing follows; returns the milliseconds until each following page was drawn.
_PAGE_TO_THE_END = """async () => {
    const tree = document.getElementById("tree"), frame = () => new Promise(requestAnimationFrame), took = [];
    for (;;) {
        const before = tree.scrollHeight, began = performance.now();
        tree.scrollTop = before;
        while (tree.scrollHeight === before) {
            await frame();
            const quiet = performance.now() - began > 15000 && ![...tree.children].some(row => row.textContent.includes("loading"));
            if (quiet) return took;
        }
        took.push(performance.now() - began);
    }
}"""


def run(directory: Path) -> list[Row]:
    index = open_index("sqlite:///federator.db", base=directory)
    migrations.upgrade_schema(index)
    for size in _SIZES:
        _fill(index, size)
    raw = {"instance": {"id": "bench"}, "sources": {"lake": {"impl": "federator.testing:CONNECTOR", "store": "bench"}}}
    rows: list[Row] = []
    with (
        serve_app(create_app(parse_settings(raw, directory / "federator.toml")), force_exit=True) as url,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for size in _SIZES:
            rows += _measure(browser.new_page(base_url=url, viewport={"width": 1200, "height": 900}), size)
        browser.close()
    index.close()
    return rows


def _fill(index: Index, size: int) -> None:
    fill(index, "lake", namespace("lake", f"n{size}"))
    for start in range(0, size, _FILL):
        fill(index, "lake", *(table("lake", f"n{size}", f"item_{number:06}") for number in range(start, start + _FILL)))


def _measure(page: Page, size: int) -> list[Row]:
    page.set_default_timeout(120_000)
    opened = json.dumps({"open": ["+lake", f"+lake$n{size}"], "top": 0})
    page.add_init_script(f"sessionStorage.setItem({json.dumps(_KEY_OF_TREE)}, {json.dumps(opened)})")
    first_views = [_first_view(page) for _ in range(10)]
    page.locator("#tree").focus()
    pages = page.evaluate(_PAGE_TO_THE_END)
    assert len(pages) >= size // _PAGE - 1, (size, len(pages), page.locator("#tree > *").last.inner_text())
    interactions = {
        "a key in the tree": lambda number: ("tree", "ArrowUp" if number % 2 else "PageUp", ""),
        "a letter in the filter": lambda number: ("filter", "", "item_0" if number % 2 else "item_00"),
    }
    named = f"{size:,} siblings"
    rows = [
        _row(f"{named}: first view with the open namespace", first_views),
        _row(f"{named}: following page of 1,000 ({len(pages)} pages)", pages),
    ]
    for what, event in interactions.items():
        budget = _INTERACTION_BUDGET_MS if size == _SIZES[0] else None
        rows.append(_row(f"{named}, all loaded: {what}", _interact(page, event), budget))
    page.close()
    return rows


def _first_view(page: Page) -> float:
    """Milliseconds from the navigation until rows of the open namespace are in the document."""
    page.goto("/ui/sources", wait_until="commit")
    return float(page.evaluate(_ROWS_ARE_SHOWN))


def _interact(page: Page, event: Callable[[int], tuple[str, str, str]]) -> list[float]:
    return [float(page.evaluate(_UNTIL_FRAME, list(event(number)))) for number in range(_REPEATS)]


def _row(name: str, times: list[float], budget: float | None = None) -> Row:
    """The median and the 95th percentile in milliseconds."""
    p95 = statistics.quantiles(times, n=20)[-1]
    if budget is not None:
        return limit(f"{name}, p95", p95, budget, "ms")
    return Row(f"{name}, median; p95", "", "", f"{statistics.median(times):.0f}; {p95:.0f} ms", "", True)
