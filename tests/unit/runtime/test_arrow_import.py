"""Child processes and Spark's workers use Arrow and Lance without pandas."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import sys
from federator.runtime.arrow_import import import_arrow_without_pandas
import_arrow_without_pandas()
import lance
import pyarrow as pa
print(pa.array(["x"]).to_pylist(), "pandas" in sys.modules)
import pandas
frame = pa.table({"n": [1, 2]}).to_pandas()
print(type(frame) is pandas.DataFrame, pa.array(frame["n"]).to_pylist())
"""


def test_arrow_and_lance_import_no_pandas_and_who_wants_it_has_it() -> None:
    completed = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
    assert completed.stdout.splitlines() == ["['x'] False", "True [1, 2]"]
