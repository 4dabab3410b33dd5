"""Hook of MkDocs: links to files outside of docs/ become plain text, because the site does not have these files.

A link to a missing file is a warning, which ``strict`` makes an error.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_LINK = re.compile(r"\[([^\]\n]+)\]\((\.\.?/[^)#\s]+)(#[^)\s]*)?\)")
_log = logging.getLogger("mkdocs.hooks.repository_links")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return the page's text without links that leave docs/."""
    directory = (ROOT / "docs" / page.file.src_uri).parent

    def replace(match: re.Match[str]) -> str:
        target = (directory / match[2]).resolve()
        if target.is_relative_to(ROOT / "docs") and not target.is_dir():
            return match[0]
        if not target.exists():
            _log.warning("%s: no file %s", page.file.src_uri, match[2])
        text = match[1] if "`" in match[1] else f"*{match[1]}*"
        return f"{text} (`{target.relative_to(ROOT)}`)"

    return _LINK.sub(replace, markdown)
