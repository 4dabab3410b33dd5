"""The export has each table, its columns, its origin and its drift, as the SDK's file sink writes its own requests.

``metadata ingest`` imports the same source by its name, with the configuration of the how-to.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from metadata.generated.schema.metadataIngestion.workflow import OpenMetadataWorkflowConfig
from metadata.utils.importer import import_from_module

from federator.client import Client
from federator.integrations import openmetadata

FILE = Path("export.json")
ORIGIN = "lance_federator.hive.sales.orders"
COPY = "lance_federator.aws.123456789012$sales.orders"


def main() -> None:
    url, token = os.environ["FEDERATOR_URL"], os.environ["FEDERATOR_TOKEN"]
    with Client(url, token=token) as client:
        run = client.wait_for_run(client.request_run("sync"), timeout=600)
        assert run.state == "ok", run
        drift = client.list_drift()
    assert openmetadata.main([url, str(FILE)]) == 0
    records = json.loads(FILE.read_text("utf-8"))
    tables = {f"{record['databaseSchema']}.{record['name']}": record for record in records if "databaseSchema" in record}
    assert len(tables) == 6, list(tables)
    assert {ORIGIN, COPY} <= set(tables), list(tables)
    order = [(record["name"], record.get("service") or record.get("database")) for record in records if "name" in record]
    assert order[:3] == [
        ("lance_federator", None),
        ("aws", "lance_federator"),
        ("123456789012$sales", "lance_federator.aws"),
    ], order
    columns = [(column["name"], column["dataType"], column.get("arrayDataType")) for column in tables[ORIGIN]["columns"]]
    assert columns == [("id", "BIGINT", None), ("amount", "DOUBLE", None), ("vector", "ARRAY", "FLOAT")], columns
    assert tables[ORIGIN]["locationPath"].endswith("/orders.lance")
    links = [(record["from_entity_fqn"], record["to_entity_fqn"]) for record in records if "from_entity_fqn" in record]
    assert len(links) == 3, links
    assert (ORIGIN, COPY) in links
    # The catalog declares other columns than those that are stored.
    tests = {record["entityLink"]: record["name"] for record in records if "entityLink" in record}
    assert f"<#E::table::{ORIGIN}>" in tests, (tests, drift)
    results = {record["test_case_name"]: record["test_case_results"] for record in records if "test_case_name" in record}
    assert len(results) == len(drift), (results, drift)
    assert results[f"{ORIGIN}.{tests[f'<#E::table::{ORIGIN}>']}"]["testCaseStatus"] == "Failed"
    check_workflow(url, len(records))
    os.environ["FEDERATOR_TOKEN"] = "no token of this service"
    assert openmetadata.main([url, "refused.json"]) == 1


def check_workflow(url: str, expected: int) -> None:
    """The SDK accepts the configuration of the how-to, and the source that it names yields the same requests."""
    connection = {
        "type": "CustomDatabase",
        "sourcePythonClass": "federator.integrations.openmetadata.FederatorSource",
        "connectionOptions": {"url": url},
    }
    config = OpenMetadataWorkflowConfig.model_validate(
        {
            "source": {
                "type": "CustomDatabase",
                "serviceName": "lance_federator",
                "serviceConnection": {"config": connection},
                "sourceConfig": {"config": {"type": "DatabaseMetadata"}},
            },
            "sink": {"type": "metadata-rest", "config": {}},
            "workflowConfig": {
                "openMetadataServerConfig": {
                    "hostPort": "http://127.0.0.1:1/api",
                    "authProvider": "openmetadata",
                    "securityConfig": {"jwtToken": "t"},
                }
            },
        }
    )
    kind = import_from_module(config.source.serviceConnection.root.config.sourcePythonClass)
    source = kind.create(config.source.model_dump(), None)
    source.prepare()
    source.test_connection()
    sent = list(source.run())
    source.close()
    assert not source.get_status().failures, source.get_status().failures
    assert len(sent) == expected + 1, (len(sent), expected)  # and the barrier


main()
