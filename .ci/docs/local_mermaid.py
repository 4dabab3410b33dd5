"""Hook of MkDocs: diagrams are drawn by a copy of Mermaid in the site. The theme would load it from another host.

``make docs`` puts Mermaid's bundle beside the environment of MkDocs.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from mkdocs.utils import get_relative_url  # type: ignore[import-not-found]

BUNDLE = Path(__file__).resolve().parents[2] / ".venv-docs" / "mermaid" / "mermaid.min.js"
_URL = "assets/javascripts/mermaid.min.js"


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """Return a page with diagrams with the script before the theme's own."""
    if 'class="mermaid"' not in output:
        return output
    return output.replace("</head>", f'<script src="{get_relative_url(_URL, page.url)}"></script></head>', 1)


def on_post_build(*, config: Any, **_: Any) -> None:
    target = Path(config.site_dir, _URL)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(BUNDLE, target)
