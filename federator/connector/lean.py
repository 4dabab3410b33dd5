"""Processes without pandas: Arrow imports it only to ask whether a list is one of its Series, which costs most of a second each.

Nothing of ours uses pandas. Only processes that are ours alone may do without it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not imported in processes of our own", name="pandas")
        return None


_NO_PANDAS = _NoPandas()


def hide_pandas() -> None:
    """Makes ``import pandas`` fail in this process from now on; harmless where it has been imported already."""
    if _NO_PANDAS not in sys.meta_path:
        sys.meta_path.insert(0, _NO_PANDAS)


@contextmanager
def without_pandas() -> Iterator[None]:
    """The same for a while, where something asks for pandas only to see whether it is there."""
    hide_pandas()
    try:
        yield
    finally:
        sys.meta_path.remove(_NO_PANDAS)
