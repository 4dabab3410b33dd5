"""A process whose Spark session was lost: its JVM was killed, or its application was stopped. The next run has another one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from federator.testing import MemoryStore
from tests.fixtures.spark import require_java

_RUNS = """
import json, threading
from pathlib import Path
from pyspark import SparkContext
from federator.service import Federator
from federator.settings import load_settings

def kill():
    jvm = SparkContext._gateway.proc
    jvm.kill()
    jvm.wait()

federator = Federator.open(load_settings(Path("federator.toml")))
results = [federator.crawl(["lake"])]
kill()
results.append(federator.crawl(["lake"]))
SparkContext._active_spark_context._jsc.sc().stop()
results.append(federator.crawl(["lake"]))
# The source does not respond, so the JVM is killed while a task waits for it.
threading.Timer(5, kill).start()
results += [federator.crawl(["hanging"]), federator.crawl(["lake"])]
print(json.dumps([[result.state, [*result.errors.values()]] for result in results]))
"""


@pytest.mark.timeout(300)
def test_the_next_run_of_a_process_has_another_session(tmp_path: Path) -> None:
    require_java()
    MemoryStore(str(tmp_path / "lake.json")).add_table(("sales", "orders"), "s3://lake/orders.lance")
    (tmp_path / "federator.toml").write_text(
        f'[verify]\nenabled = false\n[sources.lake]\nimpl = "federator.testing:CONNECTOR"\nfile = "{tmp_path}/lake.json"\n'
        f'[sources.hanging]\nimpl = "federator.testing:CONNECTOR"\nfile = "{tmp_path}/lake.json"\nfaults = "hang:sales=60"\n',
        encoding="utf-8",
    )
    ran = subprocess.run([sys.executable, "-c", _RUNS], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    first, after_kill, after_stop, killed, last = json.loads(ran.stdout.splitlines()[-1])
    assert first == after_kill == after_stop == last == ["ok", []]
    text = "Spark could not crawl hanging: its JVM has ended\n  hint: see .federator/spark.log for details"
    assert killed == ["failed", [text]]


def test_the_jvm_has_as_much_room_for_compiled_code_as_java_gives_by_default(spark: None) -> None:
    from pyspark import SparkContext

    # A run of the reports alone fills 42 MB. A JVM without room ends: "Out of space in CodeCache for adapters".
    pools = SparkContext._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    assert sum(pool.getUsage().getMax() for pool in pools if "Code" in pool.getName()) >= 240 * 2**20
