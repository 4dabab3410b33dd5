"""The page: one document, a style sheet and JavaScript modules. They are served as they are, without a build step.

The files have the digest of all of them in their URL. So a browser may keep them for ever, and never mixes the files of two versions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable

_MEDIA_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class Assets:
    """The page's files by name, for example ``views/plan.js``; the digest of all of them; and the document that loads them."""

    files: dict[str, bytes]
    digest: str
    document: str

    def document_with(self, *, sign_in: str | None) -> str:
        """Return the document. ``sign_in``: the path at which a person signs in; None if people cannot sign in with a browser."""
        meta = f'<meta name="sign-in" content="{escape(sign_in)}">' if sign_in is not None else ""
        return self.document.replace("{sign_in}", meta)

    def media_type(self, name: str) -> str:
        """Return the media type of a file. Raise KeyError if its suffix is unknown."""
        return _MEDIA_TYPES[name[name.rindex(".") :]]


@cache
def load_assets() -> Assets:
    """Return the page's files. They are read once."""
    contents = dict(sorted(_iter_files(files("federator.web").joinpath("static"))))
    parts = (f"{name}\0{len(content)}\0".encode() + content for name, content in contents.items())
    digest = hashlib.sha256(b"".join(parts)).hexdigest()[:16]
    base = f"/web/{digest}"
    modules = [name for name in contents if name.endswith(".js") and "/" not in name]
    preloads = "\n".join(f'<link rel="modulepreload" href="{base}/{name}">' for name in modules)
    document = files("federator.web").joinpath("index.html").read_text(encoding="utf-8")
    return Assets(contents, digest, document.replace("{base}", base).replace("{preloads}", preloads))


def build_message(title: str, text: str, sign_in: str) -> str:
    """A page that tells a person one thing, in the style of the page and without scripts. ``sign_in``: the path of another attempt."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="/web/{load_assets().digest}/page.css"></head><body class="message"><main>'
        f'<h1>{escape(title)}</h1><p>{escape(text)}</p><p><a href="{escape(sign_in)}">Sign in again</a></p></main></body></html>'
    )


def _iter_files(directory: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in directory.iterdir():
        if entry.is_dir():
            yield from _iter_files(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(tuple(_MEDIA_TYPES)):
            yield f"{prefix}{entry.name}", entry.read_bytes()
