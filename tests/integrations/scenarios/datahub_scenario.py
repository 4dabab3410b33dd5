"""The export has each table, its columns, its origin and its drift; DataHub's own check accepts the file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from federator.client import Client
from federator.integrations import datahub

FILE = Path("export.json")


def main() -> None:
    url, token = os.environ["FEDERATOR_URL"], os.environ["FEDERATOR_TOKEN"]
    with Client(url, token=token) as client:
        run = client.wait_for_run(client.request_run("sync"), timeout=600)
        assert run.state == "ok", run
        subjects = [finding.subject for finding in client.list_drift()]
    assert datahub.main([url, str(FILE)]) == 0
    check = [str(Path(sys.executable).with_name("datahub")), "check", "metadata-file", str(FILE)]
    checked = subprocess.run(check, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    aspects = {
        (record["entityUrn"], record["aspectName"]): record["aspect"]["json"] for record in json.loads(FILE.read_text("utf-8"))
    }
    origin = datahub.build_urn("hive$sales$orders", "PROD")
    copy = datahub.build_urn("aws$123456789012$sales$orders", "PROD")
    datasets = {urn for urn, name in aspects if name == "datasetProperties"}
    assert len(datasets) == 6, datasets
    assert {origin, copy} <= datasets
    assert aspects[origin, "datasetProperties"]["customProperties"]["federator.verification"] == "valid"
    (upstream,) = aspects[copy, "upstreamLineage"]["upstreams"]
    assert (upstream["dataset"], upstream["type"]) == (origin, "COPY")
    fields = [field["fieldPath"] for field in aspects[origin, "schemaMetadata"]["fields"]]
    assert fields == ["id", "amount", "vector"], fields
    # The catalog declares other columns than those that are stored.
    assert "hive$sales$orders" in subjects, subjects
    asserted = {aspect["customAssertion"]["entity"] for (_, name), aspect in aspects.items() if name == "assertionInfo"}
    assert origin in asserted, asserted
    results = [aspect["result"]["type"] for (_, name), aspect in aspects.items() if name == "assertionRunEvent"]
    assert set(results) == {"FAILURE"}


main()
