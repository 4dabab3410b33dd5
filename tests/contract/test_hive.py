"""Real Hive metastores: 2.3, 3.1.3 and 4.0.1."""

from __future__ import annotations

from typing import ClassVar

import pytest

from federator.model import Path
from federator.testing.contract import ConnectorContract
from federator.testing.contract.base import Location
from federator_connectors import hive2, hive3
from tests.fixtures.hive import Metastore


class _Hive(ConnectorContract):
    write_requests = (b"drop_table", b"alter_table")
    unreachable: ClassVar = {"uri": "thrift://127.0.0.1:9"}

    @pytest.fixture(autouse=True)
    def server(self, metastore: Metastore) -> None:
        self.metastore = metastore

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return self.metastore.properties

    @pytest.fixture
    def namespace(self) -> Path:
        return self.metastore.database()

    @pytest.fixture
    def location(self) -> Location:
        return lambda name: self.metastore.location(f"{name}.lance")

    def make_managed(self, namespace: Path, name: str) -> None:
        self.metastore.managed_table((*namespace, name))

    def make_foreign(self, namespace: Path, name: str) -> None:
        self.metastore.table((*namespace, name), {"EXTERNAL": "TRUE"})


@pytest.mark.parametrize("metastore", ["hive2"], indirect=True)
class TestHive2(_Hive):
    against = "Hive Metastore 2.3.10, from PySpark's jars"
    connector = hive2.CONNECTOR
    keeps_feed = False


@pytest.mark.parametrize("metastore", ["hive3"], indirect=True)
class TestHive3(_Hive):
    against = "Hive Metastore 3.1.3"
    connector = hive3.CONNECTOR


@pytest.mark.parametrize("metastore", ["hive4"], indirect=True)
class TestHive4(_Hive):
    against = "Hive Metastore 4.0.1"
    connector = hive3.CONNECTOR
    keeps_feed = False
