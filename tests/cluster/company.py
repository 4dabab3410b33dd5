"""A company whose catalog and storage are moto's: a Glue database with tables on S3."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from federator.connector.errors import NamespaceAlreadyExists
from federator.model import NamespaceRecord, TableRecord
from federator.store import migrations, open_index
from federator_connectors import glue
from tests.cluster.installation import Installation, configured
from tests.fixtures.glue import GlueAccount, account


@dataclass(frozen=True)
class Company:
    """A Glue database with tables on S3, and a way to run the federator over it."""

    origin: GlueAccount
    database: str
    storage: dict[str, str]

    def create_tables(self, written: Iterable[int], absent: Iterable[int]) -> None:
        """Declare tables ``t0``, ``t1``, ... of these numbers, in one database. Those of ``written`` are on S3, too."""
        rows, written = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}), frozenset(written)
        namespace = (self.origin.account_id, self.database)
        with glue.CONNECTOR.open("lake", glue.CONNECTOR.parse_settings(dict(self.origin.properties))) as catalog:
            with suppress(NamespaceAlreadyExists):
                catalog.create_namespace(NamespaceRecord("lake", namespace))
            for number in sorted({*written, *absent}):
                location = f"s3://lance-data/{self.origin.account_id}/t{number}.lance"
                if number in written:
                    lance.write_dataset(rows, location, storage_options=self.storage)
                catalog.declare_table(
                    TableRecord("lake", (*namespace, f"t{number}"), location, properties={"number": str(number)})
                )

    def behind(self, relay_uri: str) -> Company:
        """The same catalog and storage, behind a relay."""
        return replace(self, origin=replace(self.origin, url=relay_uri), storage={**self.storage, "aws_endpoint": relay_uri})

    def configure(
        self,
        directory: Path,
        url: str,
        spark: dict[str, Any],
        conf: dict[str, str] | None = None,
        *,
        own_executors: bool = True,
    ) -> Installation:
        """Write a configuration whose mirror has a Glue account of its own as target.

        Executors resolve references in their own environment. Those of a Connect server are not the session's ``own_executors``.
        """
        directory.mkdir()
        with closing(open_index(url)) as index:
            migrations.upgrade_schema(index)
        accounts = {"lake": self.origin.properties, "copy": account(self.origin.url).properties}
        storage = {f"storage.{key}": value for key, value in self.storage.items()}
        secrets = {"S3_KEY": self.storage["aws_access_key_id"], "S3_SECRET": self.storage["aws_secret_access_key"]}
        storage |= {"storage.aws_access_key_id": "${S3_KEY}", "storage.aws_secret_access_key": "${S3_SECRET}"}
        for name, properties in accounts.items():
            for key in ("access_key_id", "secret_access_key", "session_token"):
                secrets[f"{name}_{key}".upper()] = properties[key]
                properties[key] = f"${{{f'{name}_{key}'.upper()}}}"
        sections = {
            "instance": {"id": "cluster"},
            "index": {"url": url},
            "spark": spark,
            "spark.conf": {f"spark.executorEnv.{name}": value for name, value in secrets.items() if own_executors}
            | (conf or {}),
            "sources.lake": {"impl": "glue", **accounts["lake"], **storage},
            "sources.copy": {"impl": "glue", **accounts["copy"]},
            "mirrors.copies": {"from": "lake", "to": "copy"},
        }
        return configured(directory, url, sections, secrets)
