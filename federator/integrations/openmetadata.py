"""Export to OpenMetadata: databases, schemas, tables, lineage of mirrors, and drift as failed tests.

``python -m federator.integrations.openmetadata URL FILE.json`` writes the requests with the SDK's file sink; the token is read from
FEDERATOR_TOKEN. ``metadata ingest`` sends the same requests to a server: ``FederatorSource`` is the ``sourcePythonClass`` of a
``CustomDatabase``, with the service's address as connection option ``url``.

A source of the federator is a database, a namespace is a schema, named by its path in the source (``sales$eu``).
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from metadata.generated.schema.api.data.createDatabase import CreateDatabaseRequest
from metadata.generated.schema.api.data.createDatabaseSchema import CreateDatabaseSchemaRequest
from metadata.generated.schema.api.data.createTable import CreateTableRequest
from metadata.generated.schema.api.services.createDatabaseService import CreateDatabaseServiceRequest
from metadata.generated.schema.api.tests.createTestCase import CreateTestCaseRequest
from metadata.generated.schema.api.tests.createTestDefinition import CreateTestDefinitionRequest
from metadata.generated.schema.entity.data.table import Column, DataType, TableType
from metadata.generated.schema.entity.data.table import Table as MetadataTable
from metadata.generated.schema.entity.services.databaseService import DatabaseServiceType
from metadata.generated.schema.metadataIngestion.workflow import Source as WorkflowSource
from metadata.generated.schema.tests.basic import TestCaseResult, TestCaseStatus
from metadata.generated.schema.tests.testDefinition import EntityType, TestPlatform
from metadata.ingestion.api.models import Either
from metadata.ingestion.api.steps import Source
from metadata.ingestion.models.barrier import Barrier
from metadata.ingestion.models.custom_basemodel_validation import replace_separators
from metadata.ingestion.models.ometa_lineage import OMetaFQNLineageRequest
from metadata.ingestion.models.tests_data import OMetaTestCaseResultsSample
from metadata.ingestion.ometa.ometa_api import OpenMetadata
from metadata.ingestion.sink.file import FileSink
from metadata.utils.entity_link import get_entity_link
from metadata.utils.fqn import quote_name

from federator.client import Client
from federator.client.models import DriftView, Table
from federator.integrations.tables import item_type, iter_tables, list_columns, list_origins, to_millis, type_family

SERVICE = "lance_federator"
_DEFINITION = "lance_federator_drift"
_TYPES = {
    "bool": DataType.BOOLEAN, "int": DataType.INT, "float": DataType.FLOAT, "decimal": DataType.DECIMAL, "string": DataType.STRING,
    "binary": DataType.BYTES, "date": DataType.DATE, "time": DataType.TIME, "timestamp": DataType.TIMESTAMP, "list": DataType.ARRAY,
    "map": DataType.MAP, "struct": DataType.STRUCT, "other": DataType.UNKNOWN,
}  # fmt: skip
_EXACT_TYPES = {
    "int8": DataType.TINYINT, "tinyint": DataType.TINYINT, "int16": DataType.SMALLINT, "smallint": DataType.SMALLINT,
    "int64": DataType.BIGINT, "bigint": DataType.BIGINT, "double": DataType.DOUBLE,
}  # fmt: skip


class FederatorSource(Source):
    """Yields the requests for everything that the token may see."""

    def __init__(self, client: Client, url: str, service: str = SERVICE) -> None:
        super().__init__()
        self._client, self._url, self._service = client, url.rstrip("/"), service

    @classmethod
    def create(
        cls, config_dict: dict[str, Any], metadata: OpenMetadata[Any, Any], pipeline_name: str | None = None
    ) -> FederatorSource:
        """Called by ``metadata ingest`` with the ``source`` of its configuration. Only the sink needs OpenMetadata's server."""
        del metadata, pipeline_name
        config = WorkflowSource.model_validate(config_dict)
        options = config.serviceConnection.root.config.connectionOptions.root
        client = Client(options["url"], token=os.environ.get("FEDERATOR_TOKEN"))
        return cls(client, options["url"], config.serviceName)

    def prepare(self) -> None:
        """Nothing to prepare."""

    def test_connection(self) -> None:
        self._client.get_principal()

    def close(self) -> None:
        self._client.close()

    def _iter(self) -> Iterator[Either[Any]]:
        for request in build_requests(iter_tables(self._client), self._client.list_drift(), self._url, self._service):
            yield Either(right=request)


def build_fqn(object_id: str, service: str = SERVICE) -> str:
    """Return OpenMetadata's name of a declaration: ``lance_federator.lake_hive.sales.orders``."""
    return _join(*_names(object_id, service))


def build_requests(tables: Iterable[Table], drift: Iterable[DriftView], url: str, service: str = SERVICE) -> Iterator[Any]:
    """Yield the service, each table after its database and schema, then lineage, then a test and its failure for each drift."""
    yield CreateDatabaseServiceRequest(name=service, serviceType=DatabaseServiceType.CustomDatabase)
    databases: set[str] = set()
    schemas: set[tuple[str, str]] = set()
    known: set[str] = set()
    links: list[tuple[str, str]] = []
    for table in tables:
        names = _names(table.id, service)
        _, database, schema, _ = names
        if database not in databases:
            databases.add(database)
            yield CreateDatabaseRequest(name=database, service=_join(service))
        if (database, schema) not in schemas:
            schemas.add((database, schema))
            yield CreateDatabaseSchemaRequest(name=schema, database=_join(service, database))
        yield _table_request(table, names, url)
        known.add(table.id)
        links += [(build_fqn(origin, service), _join(*names)) for origin in list_origins(table)]
    # The sink for servers sends tables in batches. What follows refers to them.
    yield Barrier("tables before lineage and tests")
    for origin, copy in links:
        yield OMetaFQNLineageRequest(
            from_entity_fqn=origin, from_entity_type="table", to_entity_fqn=copy, to_entity_type="table"
        )  # fmt: skip
    yield CreateTestDefinitionRequest(
        name=_DEFINITION, description="No drift, as Lance Federator compares catalogs, mirrors and storage.",
        entityType=EntityType.TABLE, testPlatforms=[TestPlatform.Other],
    )  # fmt: skip
    for finding in drift:
        if finding.subject in known:
            yield from _drift_requests(finding, build_fqn(finding.subject, service))


def _table_request(table: Table, names: tuple[str, ...], url: str) -> CreateTableRequest:
    return CreateTableRequest(
        name=names[-1], description=table.doc, tableType=TableType.External, databaseSchema=_join(*names[:-1]),
        columns=[_column(name, type_text) for name, type_text, _ in list_columns(table)], locationPath=table.location,
        sourceUrl=f"{url}/ui/t/{table.id}",
    )  # fmt: skip


def _column(name: str, type_text: str) -> Column:
    data_type = _data_type(type_text)
    return Column(
        name=name, dataType=data_type, dataTypeDisplay=type_text,
        arrayDataType=_data_type(item_type(type_text)) if data_type == DataType.ARRAY else None,
        # A server refuses a struct without children. The text above has the fields.
        children=[] if data_type == DataType.STRUCT else None,
    )  # fmt: skip


def _data_type(type_text: str) -> DataType:
    return _EXACT_TYPES.get(type_text) or _TYPES[type_family(type_text)]


def _drift_requests(finding: DriftView, table: str) -> Iterator[Any]:
    """The test "no drift of this kind", and its failure when the drift was last found."""
    digest = hashlib.sha256(f"{finding.kind}\n{finding.other}".encode()).hexdigest()
    name = f"no_{finding.kind}_{digest[:12]}"
    yield CreateTestCaseRequest(
        name=name, displayName=f"No drift: {finding.kind.replace('_', ' ')}", testDefinition=_DEFINITION,
        entityLink=get_entity_link(MetadataTable, table), description=f"{finding.severity}: {finding.other}",
    )  # fmt: skip
    yield OMetaTestCaseResultsSample(
        test_case_name=f"{table}.{name}",
        test_case_results=TestCaseResult(
            timestamp=to_millis(finding.last_seen), testCaseStatus=TestCaseStatus.Failed, result=finding.detail
        ),
    )


def _names(object_id: str, service: str) -> tuple[str, str, str, str]:
    """Service, database, schema and table of a declaration. A table without a namespace is in the schema ``default``."""
    source, *namespace, table = object_id.split("$")
    return service, *(replace_separators(name) for name in (source, "$".join(namespace) or "default", table))


def _join(*names: str) -> str:
    return ".".join(quote_name(name) for name in names)


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m federator.integrations.openmetadata URL FILE.json\n")
        return 64
    url, file = arguments
    with Client(url, token=os.environ.get("FEDERATOR_TOKEN")) as client:
        source, sink = FederatorSource(client, url), FileSink.create({"filename": file}, None)
        for record in source.run():
            if record is not None and not isinstance(record, Barrier):
                sink.run(record)
        sink.close()
    failures = [*source.get_status().failures, *sink.get_status().failures]
    for failure in failures:
        sys.stderr.write(f"{failure.name}: {failure.error}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
