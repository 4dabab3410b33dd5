"""Import of pyarrow without pandas.

At the first conversion of Python values, pyarrow imports pandas if it is installed, and Lance does so when it is imported. That takes
longer than all other imports of a worker together, and the federator uses no pandas.
"""

from __future__ import annotations

import sys
from typing import Any


class _HidePandas:
    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:  # noqa: ARG002 - the protocol of finders
        if name == "pandas":
            raise ModuleNotFoundError(name="pandas")


def import_arrow_without_pandas() -> None:
    """Import pyarrow so that it does not import pandas by itself.

    ``import pandas`` and ``to_pandas`` still work. Call it before the first conversion, because pyarrow tries only once.
    """
    finder: Any = _HidePandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([None])
    finally:
        sys.meta_path.remove(finder)
