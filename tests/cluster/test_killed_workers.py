"""Workers are killed while their tasks are in the middle of a stage: the run repeats these tasks, and the index is the same."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

from federator.store import open_index
from tests.cluster.company import Company
from tests.cluster.installation import Installation
from tests.fixtures.cluster import Cluster
from tests.fixtures.index_content import published_content
from tests.fixtures.relay import Noting

pytestmark = pytest.mark.timeout(3000)
#: What a task sends in the middle of each stage. PostgreSQL and HDFS still execute the last request of a killed worker, and
#: their responses reach nobody.
_CATALOG_AND_STORAGE = {
    "crawl": rb"AWSGlue\.GetTables",
    "verify": rb"(GET|HEAD) /lance-data/",
}
_STAGING = {
    "commit of a staged file": rb"\x06rename",
}
_INDEX = {
    "compare": rb"SELECT state\.is_table, state\.path, state\.kind, state\.digest",
    "write a part": rb"INSERT INTO draft_part(?s:.)*COPY record \(",
    "commit a part": rb"INSERT INTO draft_part(?s:.)*COMMIT",
    "plan": rb"SELECT state\.path, state\.kind, state\.canonical",
    "report": rb"FROM dataset",
}


class KillingRelay(Noting):
    """Kills the worker that sends what one of ``patterns`` matches, once for each of them. Of the driver it takes no notice."""

    def __init__(self, target: str, cluster: Cluster, patterns: dict[str, bytes]) -> None:
        super().__init__(target)
        self.waiting = {stage: re.compile(pattern) for stage, pattern in patterns.items()}
        self._cluster, self._lock = cluster, threading.Lock()
        self._workers: dict[int, subprocess.Popen[bytes] | None] = {}

    def hold_request(self, client: int, sent: bytes) -> None:
        with self._lock:
            if id(sent) not in self._workers:
                self._workers[id(sent)] = self._cluster.worker_of(client)
            worker = self._workers[id(sent)]
            stage = next((stage for stage, pattern in self.waiting.items() if pattern.search(sent)), None) if worker else None
            if worker is not None and worker in self._cluster.workers and stage is not None:
                self._cluster.replace_worker(worker)
                del self.waiting[stage]


@contextmanager
def killing(target: str, cluster: Cluster, patterns: dict[str, bytes]) -> Iterator[KillingRelay]:
    relay = KillingRelay(target, cluster, patterns)
    try:
        yield relay
    finally:
        relay.close()


def test_a_worker_killed_in_each_stage_costs_a_retry(
    cluster: Cluster, company: Company, archive: Path, postgres_database: Callable[..., str], tmp_path: Path
) -> None:
    url = make_url(postgres_database())
    with (
        killing(company.origin.url, cluster, _CATALOG_AND_STORAGE) as catalog,
        killing(cluster.hdfs.rpartition("/")[0], cluster, _STAGING) as staging,
        killing(f"postgresql://{url.host}:{url.port}", cluster, _INDEX) as index,
    ):
        behind = url.set(port=int(index.uri.rpartition(":")[2])).render_as_string(hide_password=False)
        spark = {"master": cluster.master, "staging": f"{staging.uri}/staging/killed", "archive": str(archive)}
        conf = {"spark.pyspark.python": cluster.python, "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
        # Both use the relay, because the address of a store is part of the index.
        reached = company.behind(catalog.uri)
        killed = reached.configure(tmp_path / "killed", behind, spark, conf)
        undisturbed = reached.configure(tmp_path / "undisturbed", postgres_database(), {"master": "local[2,4]"})
        for installation in (undisturbed, killed):
            installation.run("sync")
        company.create_tables((), range(100, 103))
        for installation in (undisturbed, killed):
            installation.run("sync")
            installation.run("report", "inventory")
        assert {**catalog.waiting, **staging.waiting, **index.waiting} == {}
        assert killed.results() == undisturbed.results()
        assert content_of(killed) == content_of(undisturbed)
        assert rows_of_report(killed) == rows_of_report(undisturbed)


def content_of(installation: Installation) -> dict[str, list[str]]:
    """What its crawls have published of the origin. Each installation has a copy in an account of its own."""
    with closing(open_index(installation.url)) as index:
        content = published_content(index)
    own = {name: rows for name, rows in content.items() if name != "vocabulary"}
    return {name: [repr(row) for row in rows if "lake" in row] for name, rows in own.items()}


def rows_of_report(installation: Installation) -> list[dict[str, str]]:
    """The rows of the origin, without times."""
    rows = (row for row in installation.report() if row["source"] == "lake")
    return [{name: text for name, text in row.items() if not name.endswith("_at")} for row in rows]
