"""The example passes the contract suite, as every connector must."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import ClassVar

import pytest
from sqlite_catalog import CONNECTOR, create_file

from federator.connector import Catalog
from federator.model import NamespaceRecord, Path
from federator.testing import ConnectorContract
from federator.testing.contract import SOURCE, unique_name


class TestSqlite(ConnectorContract):
    connector = CONNECTOR
    unreachable: ClassVar = {"file": "/nonexistent/catalog.db"}

    @pytest.fixture
    def properties(self, tmp_path: FilePath) -> dict[str, str]:
        create_file(file := str(tmp_path / "catalog.db"))
        return {"file": file, "root": str(tmp_path)}

    @pytest.fixture
    def namespace(self, catalog: Catalog) -> Path:
        return catalog.create_namespace(NamespaceRecord(SOURCE, (unique_name("ns"),))).path

    @pytest.fixture
    def location(self) -> Callable[[str], str]:
        return lambda name: f"s3://bucket/{name}.lance"
