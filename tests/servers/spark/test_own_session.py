"""The crawl in a Spark session of the user, as in the documentation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from federator.settings import parse_settings
from federator.testing import MemoryStore
from tests.fixtures.spark import require_java

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "export.md"
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
    java = require_java()
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


_GROUP = """
import sys
from pathlib import Path
from federator.service import Federator
from federator.settings import load_settings
from federator.stages.context import RunContext
from federator.stages.report import ReportSpec
RunContext.remove_staging = lambda self: None
settings = load_settings(Path("federator.toml"))
federator = Federator.open(settings)
states = [federator.crawl().state, federator.make_report(ReportSpec.from_settings(settings, "freshness")).state]
print(*states)
"""


@pytest.mark.timeout(300)
def test_staging_and_reports_have_the_mode_of_the_umask_and_the_index_is_private(tmp_path: Path) -> None:
    """Executors of another user in the group read and write what is staged; nobody else does."""
    require_java()
    MemoryStore(str(tmp_path / "lake.json")).add_table(("sales", "orders"), "s3://lake/orders.lance")
    (tmp_path / "federator.toml").write_text(
        f'[verify]\nenabled = false\n[sources.lake]\nimpl = "federator.testing:CONNECTOR"\nfile = "{tmp_path}/lake.json"\n',
        encoding="utf-8",
    )
    ran = subprocess.run([sys.executable, "-c", _GROUP], cwd=tmp_path, capture_output=True, text=True, check=False, umask=0o007)
    assert ran.stdout.split() == ["ok", "ok"], ran.stderr[-2000:]
    written = [path for name in ("staging", "reports") for path in (tmp_path / ".federator" / name).rglob("*")]
    assert {path.suffix for path in written} >= {".parquet", ".html"}
    for path in written:
        mode = path.stat().st_mode & 0o777
        assert mode == (0o770 if path.is_dir() else 0o660), path
    assert (tmp_path / "federator.db").stat().st_mode & 0o777 == 0o600


def test_every_thread_has_the_one_session(spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session for each thread would start workers for each, and write over the terminal's streams."""
    from federator.pipeline import session

    settings = parse_settings({}, tmp_path / "federator.toml")
    running = session.get_session(settings)
    monkeypatch.setattr(session, "_create_session", lambda _: pytest.fail("a second start"))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(session.get_session, settings).result() is running


_WORKER = """
import json, os, sys
from pathlib import Path
from federator.pipeline.session import get_session
from federator.pipeline.small_crawls import run_in_task
from federator.settings import parse_settings

def state():
    import pyspark

    wanted = {"pandas", "lance", "federator.pipeline.crawl", "pyspark.worker"}
    threads = len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 1
    return {"file": pyspark.__file__, "modules": sorted(wanted & set(sys.modules)), "threads": threads}

print(json.dumps(run_in_task(get_session(parse_settings({}, Path("federator.toml").absolute())), state)))
"""


@pytest.mark.timeout(300)
def test_a_worker_starts_with_its_imports_and_without_pandas(tmp_path: Path) -> None:
    """The libraries come from their installation, which has byte code, and were imported before the fork, which allows no thread.

    In a session of its own: a worker that ran other tasks before has what they imported.
    """
    require_java()
    ran = subprocess.run([sys.executable, "-c", _WORKER], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    body = json.loads(ran.stdout.splitlines()[-1])
    assert Path(body["file"]).parent.is_dir()
    assert body["modules"] == ["federator.pipeline.crawl", "pyspark.worker"]
    assert body["threads"] == 1
