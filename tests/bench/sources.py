"""``BENCH_SOURCES`` sources (default: 200) with 1,000 tables each, crawled by one run into PostgreSQL: memory, threads and fairness.

They are crawled twice, each time for the first time: all of them, and with one more source, whose catalog hangs until all others have
ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from federator.pipeline import session
from federator.store import migrations, open_index
from federator.testing import MemoryStore
from tests.bench.api import own_postgres, say
from tests.bench.measure import Row, limit

SOURCES = int(os.environ.get("BENCH_SOURCES", "200"))
_TABLES_OF_SOURCE = 1_000
_TABLES = """
[sources.s{number:03d}]
impl = "federator.testing:CONNECTOR"
tables = {tables}
databases = 10
parameters = 15
columns = 20
"""
_HANGING = """
[sources.hanging]
impl = "federator.testing:CONNECTOR"
file = "{file}"
deadline = "1h"
"""
# Python's own threads, those of PySpark, and two or three for each source that is crawled at a time
_MAX_THREADS = 150
_MAX_PSS_GIB = 4


def run(directory: Path) -> list[Row]:
    quiet = _crawl(directory, "")
    store = MemoryStore(str(directory / "hanging.json"))
    store.add_table(("s", "t"))
    store.faults("hang:s")
    with_hanging = _crawl(
        directory, _HANGING.format(file=directory / "hanging.json"), "hanging", str(directory / "hanging.json")
    )
    ended = with_hanging["ended"]
    assert max(ended, key=ended.__getitem__) == "hanging", ended
    del ended["hanging"]
    slowest, others = max(quiet["ended"].values()), max(ended.values())
    name = f"{SOURCES} sources with {_TABLES_OF_SOURCE:,} wide tables each"
    return [
        Row(f"{name}, until the last has ended: with one that hangs, against none", f"{slowest:.0f} s", f"{others:.0f} s",
            f"{others / slowest:.2f} x", "", ok=True),
        limit("  the driver's threads, at most", max(each["most"]["threads"] for each in (quiet, with_hanging)), _MAX_THREADS, ""),
        # A source that occupies two slots, and processes that replace others
        limit("  Python workers, at most", max(each["most"]["workers"] for each in (quiet, with_hanging)), 2 * session._MAX_SLOTS, ""),
        limit("  PSS of driver, JVM and workers together", max(each["peaks"]["run"]["all"] for each in (quiet, with_hanging)) / 1024,
              _MAX_PSS_GIB, "GiB"),
    ]  # fmt: skip


def _crawl(directory: Path, more: str, *hanging: str) -> dict[str, Any]:
    """Crawl into a new database. Return what ``crawl_round`` has measured."""
    with own_postgres() as url:
        if url is None:
            raise FileNotFoundError("no PostgreSQL: apt-get install postgresql")
        index = open_index(url)
        migrations.upgrade_schema(index)
        index.close()
        sources = "".join(_TABLES.format(number=number, tables=_TABLES_OF_SOURCE) for number in range(SOURCES))
        file = directory / "federator.toml"
        file.write_text(f'[index]\nurl = "{url}"\n[verify]\nenabled = false\n{sources}{more}', encoding="utf-8")
        command = [sys.executable, "-m", "tests.bench.crawl_round", str(file), *hanging]
        measured: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    tables = {name: (counts["state"], counts["tables"]) for name, counts in measured["sources"].items() if name not in hanging}
    assert set(tables.values()) == {("ok", _TABLES_OF_SOURCE)}, tables
    say(json.dumps({key: measured[key] for key in ("total", "most", "peaks")}))
    return measured
