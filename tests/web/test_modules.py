"""The page's modules import each other without circles, in which a module would see others before they have run."""

from __future__ import annotations

import graphlib
import re
from pathlib import Path

import federator.web

_STATIC = Path(federator.web.__file__).parent / "static"
_IMPORTED = re.compile(r"""^import .*? from "(\.[^"]+)";|\bimport\("(\.[^"]+)"\)""", re.MULTILINE)


def test_the_modules_of_the_page_have_no_import_circles() -> None:
    imports = {
        path: {(path.parent / (static or late)).resolve() for static, late in _IMPORTED.findall(path.read_text())}
        for path in _STATIC.rglob("*.js")
    }
    assert imports[_STATIC / "main.js"]
    order = list(graphlib.TopologicalSorter(imports).static_order())
    assert {path.name for path in order} >= {"api.js", "sign_in.js", "router.js", "palette.js", "object.js"}
