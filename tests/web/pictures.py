"""Takes a picture of each view of a running service, for the documentation.

Start ``federator demo``; then ``python -m tests.web.pictures URL docs/pictures``, with the URL that the demo prints. The objects in
the pictures are found by the API, so that any service with a plan, copied tables and a report (``federator report inventory``) will
do.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import requests
from playwright.sync_api import Page, expect, sync_playwright

from tests.fixtures.chromium import CHROMIUM

_WIDTH, _HEIGHT = 1200, 820


def find_addresses(get: Callable[[str], Any]) -> Mapping[str, str]:
    """Return the address below ``/ui/`` of each picture, by its name. ``get`` reads a path below ``/api/v1/``."""
    dataset = max(get("datasets?limit=50")["datasets"], key=lambda dataset: len(dataset["declarations"]))
    copied = dataset["declarations"][0]["id"]
    plan = next(plan["digest"] for plan in get("plans?limit=50")["plans"] if plan["changes"])
    run = next(run["id"] for run in get("runs?limit=50")["runs"] if run["kind"] == "sync")
    report = next(
        report["id"] for report in get("reports")["reports"] if any(file["name"] == "report.json" for file in report["files"])
    )
    source = copied.partition("$")[0]
    namespace = copied.rpartition("$")[0]
    mirror = get("mirrors")["mirrors"][0]["name"]
    table = f"t/{quote(copied)}"
    return {
        "overview": "", "sources": "sources", "source": f"t/{quote(source)}", "namespace": f"t/{quote(namespace)}",
        "table": table, "table-schema": f"{table}?tab=schema", "table-versions": f"{table}?tab=versions",
        "table-history": f"{table}?tab=history", "table-explain": f"{table}?tab=explain", "table-open-in": f"{table}?tab=open",
        "search": "search?q=order", "mirrors": "mirrors", "mirror": f"mirrors/{quote(mirror)}", "plans": "plans",
        "plan": f"plans/{plan}", "runs": "runs", "run": f"runs/{run}", "drift": "drift", "datasets": "datasets",
        "dataset": f"datasets/{quote(dataset['location'], safe='')}", "changes": "changes", "audit": "audit", "reports": "reports",
        "report": f"reports/{report}",
        "settings": "settings",
    }  # fmt: skip


def take_picture(page: Page, url: str, file: Path) -> None:
    """Save a view as a PNG when it has loaded. Raise AssertionError if it shows an error."""
    page.goto(url)
    expect(page.get_by_role("heading", level=1).first).to_be_visible()
    page.wait_for_load_state("load")
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    expect(page.get_by_text("being opened")).to_have_count(0)
    page.wait_for_timeout(
        3000
    )  # requests that follow the heading, and transitions; a stream of events would keep the network busy
    page.screenshot(path=file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Take a picture of each view of a running service.")
    parser.add_argument("url", help="the service, such as http://127.0.0.1:8000")
    parser.add_argument("directory", type=Path, help="directory for the PNG files")
    parser.add_argument("--scheme", choices=("light", "dark"), default="light")
    parser.add_argument("--width", type=int, default=_WIDTH, help="in pixels; 390 is a phone")
    arguments = parser.parse_args()

    def get(path: str) -> Any:
        response = requests.get(f"{arguments.url}/api/v1/{path}", timeout=60)
        response.raise_for_status()
        return response.json()

    addresses = find_addresses(get)
    arguments.directory.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": arguments.width, "height": _HEIGHT}, color_scheme=arguments.scheme)
        page.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)
        for name, address in addresses.items():
            take_picture(page, f"{arguments.url}/ui/{address}", arguments.directory / f"{name}.png")
            print(name, flush=True)
        browser.close()


if __name__ == "__main__":
    main()
