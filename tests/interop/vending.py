"""lance-spark 3.5 and daft with vended credentials: they read their table and no other, and a read of Spark outlasts its tokens.

The store is moto behind the enforcing proxy of ``tests.fixtures.enforcing_s3``. ``tests/unit/api/lance/test_vending.py`` shows the same
through pylance and lancedb.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from federator.demo.servers import glue
from tests.fixtures.enforcing_s3 import OWNER, ROLE, EnforcingS3, enforcing_s3
from tests.interop.environments import ROOT
from tests.interop.rest_clients import CLIENTS
from tests.unit.api.lance.conftest import CALLER, Service, served

#: the clients, with their scripts
SCRIPTS = {"spark": "lance_spark_vended.py", "daft": "daft_vended.py"}
_CALLER = "viewer s3$orders"
# One task for each fragment, one after the other: the read lasts longer than two tokens.
_ROWS, _FRAGMENTS = 12, 6
_LIFETIME_SECONDS, _DELAY_SECONDS = 3.0, 0.7


def run_vending(client: str) -> Iterator[tuple[str, str]]:
    """Yield each operation of a client with ``passed``, or the difference to what is expected."""
    with tempfile.TemporaryDirectory(prefix="vending-") as name:
        directory = Path(name)
        os.environ |= {"LAKE_KEY": OWNER["access_key_id"], "LAKE_SECRET": OWNER["secret_access_key"]}
        server = glue.start_glue(directory / "moto")
        try:
            with enforcing_s3(server.uri, external_id="agreed") as store:
                yield from _run(client, store, directory)
        finally:
            server.stop()


def _run(client: str, store: EnforcingS3, directory: Path) -> Iterator[tuple[str, str]]:
    bucket = store.new_bucket()
    storage = {
        "endpoint": store.url, "allow_http": "true", "region": "us-east-1", "access_key_id": "${LAKE_KEY}",
        "secret_access_key": "${LAKE_SECRET}",
    }  # fmt: skip
    sts = {"role_arn": ROLE, "endpoint": store.url, "external_id": "agreed"}
    source = {"impl": "dir", "root": f"s3://{bucket}", "storage": storage, "vend": "sts", "sts": sts}
    tables = {name: f"s3://{bucket}/{name}.lance" for name in ("orders", "salaries")}
    with served(directory, {"s3": source}, bare=True) as service:
        rows = pa.table({"id": range(_ROWS)})
        for location in tables.values():
            lance.write_dataset(rows, location, max_rows_per_file=_ROWS // _FRAGMENTS, storage_options=store.owner_options)
        service.crawl("s3")
        # As another role, because the service keeps the credentials of a caller and a role until they expire: these live for an hour.
        described = service.post("/v1/table/s3%24orders/describe", {"vend_credentials": True}, caller="writer s3$orders").json()
        options = described["storage_options"]
        store.lifetime, store.delay = _LIFETIME_SECONDS, _DELAY_SECONDS
        results = _run_client(client, service, directory, tables, options)
    sessions = {each.key_id for each in store.checked if each.session and each.allowed} - {options["aws_access_key_id"]}
    denied = store.denied("somebody")
    total = sum(range(_ROWS))
    own, hidden, own_location, other_location = (results[name] for name in ("own", "hidden", "own location", "other location"))
    checks = (
        ("read its table", own.get("result") == total, own),
        ("renew the credentials during that read", len(sessions) > 3, sessions),
        ("read no hidden table", "there is no table s3$salaries" in hidden.get("error", ""), hidden),
        ("read its location with vended options", own_location.get("result") == total, own_location),
        ("read no other location with them", "error" in other_location, other_location),
        ("be refused by the store for that location only", denied and all("salaries" in each.resource for each in denied), denied),
    )  # fmt: skip
    yield from ((operation, "passed" if is_met else str(shown)) for operation, is_met, shown in checks)


def _run_client(
    client: str, service: Service, directory: Path, tables: dict[str, str], options: dict[str, str]
) -> dict[str, dict[str, Any]]:
    python, variables = CLIENTS[client].prepare()
    config, results = directory / "config.json", directory / "results.json"
    config.write_text(json.dumps({
        "uri": service.url, "header": [CALLER, _CALLER], "root": str(directory), "options": options, "results": str(results),
        "tables": {"own": ["s3", "orders"], "hidden": ["s3", "salaries"]},
        "locations": {"own location": tables["orders"], "other location": tables["salaries"]},
    }), encoding="utf-8")  # fmt: skip
    environment = {key: text for key, text in os.environ.items() if not key.startswith(("AWS_", "LAKE_"))}
    environment |= {**variables, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": python, "AWS_EC2_METADATA_DISABLED": "true"}
    script = str(Path(__file__).with_name("scenarios") / SCRIPTS[client])
    with (directory / "client.log").open("w") as log:
        ended = subprocess.run(
            [python, script, str(config)], env=environment, cwd=directory, stdout=log, stderr=log, timeout=600, check=False
        )
    assert ended.returncode == 0, (directory / "client.log").read_text()[-3000:]
    loaded: dict[str, dict[str, Any]] = json.loads(results.read_text(encoding="utf-8"))
    return loaded
