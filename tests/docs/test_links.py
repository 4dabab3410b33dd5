"""Each relative link of a page of this repository leads to a file, and each fragment to a heading of it."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PRODUCT_PAGE = re.compile(r"\bdocs/[\w/.-]+\.(?:md|txt)\b|\bdocs/adr/\d{4}\b")


def tracked(*patterns: str) -> list[Path]:
    """Files of the work tree that git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT, capture_output=True, text=True
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@cache
def anchors(page: Path) -> frozenset[str]:
    """The fragments of a page's headings, as GitHub and the site build them."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain)


def broken_links(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    missing = []
    for link in _LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, fragment = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (fragment and target.suffix == ".md" and fragment not in anchors(target)):
            missing.append(link)
    return missing


PAGES = tracked("*.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_leads_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_the_code_names_pages_that_exist() -> None:
    """Docstrings, comments and hints of errors."""
    files = tracked(
        "federator/**.py", "connectors/**.py", "tests/**.py", "migrations/**.py", "deploy", "Makefile", "mkdocs.yml"
    )
    named = {
        (str(file.relative_to(ROOT)), name)
        for file in files
        for name in _PRODUCT_PAGE.findall(file.read_text(encoding="utf-8", errors="replace"))
    }
    named_pages = {(file, name) for file, name in named if name != "docs/lance-rest-service.md"}  # a page of Gravitino
    assert len(named_pages) > 20
    assert sorted((file, name) for file, name in named_pages if not list(ROOT.glob(f"{name}*"))) == []


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(
        "# A title\n[x](b.md) [y](#a-title) [z](#no-title) [w](https://example.com)\n", encoding="utf-8"
    )
    assert broken_links(tmp_path / "a.md") == ["b.md", "#no-title"]


def test_the_readme_names_the_command_that_runs_all_tests() -> None:
    assert "`make test`" in (ROOT / "README.md").read_text(encoding="utf-8")
