"""The page: plain HTML, CSS and JavaScript, put together as one document without a build step."""

from __future__ import annotations

import re
from importlib.resources import files

# In this order: each file uses those before it.
SCRIPTS = ("base.js", "tree.js", "search.js", "table.js", "runs.js", "plans.js", "places.js", "main.js")


def page() -> str:
    """The whole page. Its styles and scripts stand in it, so that a policy can allow exactly them, by digest."""
    scripts = "".join(f"<script>\n{_read(name)}</script>\n" for name in SCRIPTS)
    parts = {"style": f"<style>\n{_read('page.css')}</style>", "scripts": scripts}
    return re.sub(r"<!-- (style|scripts) -->", lambda match: parts[match[1]], _read("index.html"))


def _read(name: str) -> str:
    return files("federator.web").joinpath(name).read_text(encoding="utf-8")
