"""Export to DataHub: datasets, schemas, lineage of mirrors, and drift as assertions, as a file for DataHub's own ``file`` source.

``python -m federator.integrations.datahub URL FILE.json`` reads the service with the token in FEDERATOR_TOKEN. Load the file with
``datahub ingest mcps FILE.json``.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from datahub.emitter import mce_builder
from datahub.emitter.mcp import MetadataChangeProposalWrapper
from datahub.ingestion.sink.file import write_metadata_file
from datahub.metadata import schema_classes as schemas

from federator.client import Client
from federator.client.models import DriftView, Table
from federator.integrations.tables import iter_tables, list_columns, list_origins, to_millis, type_family

PLATFORM = "lance"
_TYPES = {
    "bool": schemas.BooleanTypeClass, "int": schemas.NumberTypeClass, "float": schemas.NumberTypeClass,
    "decimal": schemas.NumberTypeClass, "string": schemas.StringTypeClass, "binary": schemas.BytesTypeClass,
    "date": schemas.DateTypeClass, "time": schemas.TimeTypeClass, "timestamp": schemas.TimeTypeClass,
    "list": schemas.ArrayTypeClass, "map": schemas.MapTypeClass, "struct": schemas.RecordTypeClass, "other": schemas.NullTypeClass,
}  # fmt: skip


def build_urn(object_id: str, environment: str) -> str:
    """Return DataHub's name for a declaration. Its name is the object id with periods: ``lake_hive.sales.orders``."""
    return mce_builder.make_dataset_urn(PLATFORM, object_id.replace("$", "."), environment)


def build_records(
    tables: Iterable[Table], drift: Iterable[DriftView], environment: str = "PROD"
) -> Iterator[MetadataChangeProposalWrapper]:
    """Yield the aspects of all tables, and then an assertion with its newest result for each kind of drift of a table."""
    known = set()
    for table in tables:
        known.add(table.id)
        urn = build_urn(table.id, environment)
        yield from MetadataChangeProposalWrapper.construct_many(urn, list(_table_aspects(table, environment)))
    for finding in drift:
        if finding.subject in known:
            yield from _drift_records(finding, environment)


def _table_aspects(table: Table, environment: str) -> Iterator[Any]:
    dataset = table.dataset
    facts: dict[str, Any] = {
        "location": table.location,
        "verification": dataset.state if dataset else None,
        "digest": table.digest,
    }
    facts |= {"rows": dataset.rows, "version": dataset.version} if dataset else {}
    shown = {f"federator.{name}": str(value) for name, value in facts.items() if value is not None}
    yield schemas.DatasetPropertiesClass(
        name=table.path[-1], qualifiedName=table.id, description=table.doc,
        customProperties={**table.properties, **shown},
    )  # fmt: skip
    yield schemas.StatusClass(removed=False)
    if fields := [_field(*column) for column in list_columns(table)]:
        yield schemas.SchemaMetadataClass(
            schemaName=table.id, platform=mce_builder.make_data_platform_urn(PLATFORM), version=0, hash="", fields=fields,
            platformSchema=schemas.OtherSchemaClass(rawSchema=""),
        )  # fmt: skip
    if origins := list_origins(table):
        copies = [
            schemas.UpstreamClass(dataset=build_urn(origin, environment), type=schemas.DatasetLineageTypeClass.COPY)
            for origin in origins
        ]
        yield schemas.UpstreamLineageClass(upstreams=copies)


def _field(name: str, native: str, is_nullable: bool) -> schemas.SchemaFieldClass:
    kind = schemas.SchemaFieldDataTypeClass(type=_TYPES[type_family(native)]())
    return schemas.SchemaFieldClass(fieldPath=name, type=kind, nativeDataType=native, nullable=is_nullable)


def _drift_records(finding: DriftView, environment: str) -> Iterator[MetadataChangeProposalWrapper]:
    """An assertion "no drift of this kind", which failed when the drift was last found."""
    entity = build_urn(finding.subject, environment)
    digest = hashlib.sha256(f"{finding.kind}\n{finding.subject}\n{finding.other}".encode()).hexdigest()
    urn = mce_builder.make_assertion_urn(digest[:32])
    yield MetadataChangeProposalWrapper(
        entityUrn=urn,
        aspect=schemas.AssertionInfoClass(
            type=schemas.AssertionTypeClass.CUSTOM, description=f"no drift: {finding.kind.replace('_', ' ')}",
            customAssertion=schemas.CustomAssertionInfoClass(type="Lance Federator drift", entity=entity),
            customProperties={"severity": finding.severity, "other": finding.other},
        ),
    )  # fmt: skip
    yield MetadataChangeProposalWrapper(
        entityUrn=urn,
        aspect=schemas.AssertionRunEventClass(
            timestampMillis=to_millis(finding.last_seen), runId=f"{to_millis(finding.last_seen)}", asserteeUrn=entity,
            assertionUrn=urn, status=schemas.AssertionRunStatusClass.COMPLETE,
            result=schemas.AssertionResultClass(
                type=schemas.AssertionResultTypeClass.FAILURE, nativeResults={"detail": finding.detail, "other": finding.other}
            ),
        ),
    )  # fmt: skip


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m federator.integrations.datahub URL FILE.json\n")
        return 64
    url, file = arguments
    with Client(url, token=os.environ.get("FEDERATOR_TOKEN")) as client:
        write_metadata_file(Path(file), list(build_records(iter_tables(client), client.list_drift())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
