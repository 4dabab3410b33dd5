"""The crawl in a Spark session that is the user's own, by the recipe of the documentation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from federator.connector import StateError
from federator.pipeline.java import find_java
from federator.settings import parse
from federator.testing import MemoryStore

GUIDE = Path(__file__).parents[2] / "docs" / "datasets.md"
_BEFORE = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
"""
_AFTER = """
import json
print(json.dumps([tables.toPandas().to_dict("records"), crawl.where("row = 'coverage'").count()]))
spark.stop()
"""


@pytest.mark.timeout(900)
def test_the_recipe_of_the_guide_works_in_a_plain_session(tmp_path: Path) -> None:
    try:
        java = find_java()
    except StateError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    MemoryStore(str(tmp_path / "lake.json")).add_table(("sales", "orders"), "s3://lake/orders.lance")
    (tmp_path / "federator.toml").write_text(
        f'[sources.lake_hive]\nimpl = "federator.testing:CONNECTOR"\nfile = "{tmp_path}/lake.json"\n', encoding="utf-8"
    )
    (recipe,) = (
        code for code in re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL) if "spark" in code
    )
    ran = subprocess.run(
        [sys.executable, "-c", _BEFORE + recipe + _AFTER], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "JAVA_HOME": str(java.home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    tables, coverage = json.loads(ran.stdout.splitlines()[-1])
    assert [(row["source"], row["path"], row["location"]) for row in tables] == [
        ("lake_hive", "sales$orders", "s3://lake/orders.lance")
    ]
    assert coverage > 0


def test_every_thread_has_the_one_session(spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that each thread began anew would start workers for each, and write over the terminal's streams."""
    from federator.pipeline import session

    settings = parse({}, tmp_path / "federator.toml")
    running = session.session(settings)
    monkeypatch.setattr(session, "_start", lambda _: pytest.fail("a second start"))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(session.session, settings).result() is running
