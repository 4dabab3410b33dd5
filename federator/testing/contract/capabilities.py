"""Tests that a capability agrees with the methods of the port that depend on it, and with those of the facade."""

from __future__ import annotations

import lance_namespace as lance
import pytest

from federator.connector import Catalog, Unsupported
from federator.lance.facade import CatalogNamespace
from federator.model import NamespaceRecord, Path, TableRecord, local_path
from federator.testing.contract.base import (
    SOURCE,
    Contract,
    Location,
    operation,
    requires,
    supports_creating,
    supports_writes,
    unique_name,
)


class CapabilityContract(Contract):
    default_operation = "DescribeTable"

    @operation("CreateNamespace")
    @requires(lambda c: not supports_creating(c))
    def test_creating_a_namespace_is_unsupported(self, catalog: Catalog, namespace: Path) -> None:
        with pytest.raises(Unsupported):
            catalog.create_namespace(NamespaceRecord(SOURCE, (*namespace, unique_name("made"))))

    @operation("change feed")
    @requires(lambda c: not c.connector.capabilities.change_feed)
    def test_reading_a_change_feed_is_unsupported(self, catalog: Catalog) -> None:
        with pytest.raises(Unsupported):
            catalog.current_feed_cursor()
        with pytest.raises(Unsupported):
            catalog.changes_since("")

    @requires(lambda c: not c.connector.capabilities.vends_credentials)
    def test_issuing_credentials_is_unsupported(self, catalog: Catalog, namespace: Path) -> None:
        with pytest.raises(Unsupported):
            catalog.issue_credentials(TableRecord(SOURCE, (*namespace, unique_name("table")), "s3://lake/table"), writes=False)

    @requires(lambda c: supports_writes(c) and c.connector.capabilities.reports_unwritten)
    def test_a_table_without_data_is_only_declared(
        self, facade: CatalogNamespace, catalog: Catalog, namespace: Path, location: Location
    ) -> None:
        created = self.declare_new_table(catalog, namespace, location)
        assert catalog.is_only_declared(created)
        assert facade.list_tables(lance.ListTablesRequest(id=list(namespace), include_declared=False)).tables == []
        described = facade.describe_table(lance.DescribeTableRequest(id=list(created.path), check_declared=True))
        assert described.is_only_declared is True

    @requires(lambda c: supports_writes(c) and not c.connector.capabilities.reports_unwritten)
    def test_tables_without_data_are_found_by_opening_their_location(
        self, facade: CatalogNamespace, catalog: Catalog, namespace: Path, location: Location
    ) -> None:
        created = self.declare_new_table(catalog, namespace, location)
        with pytest.raises(Unsupported):
            catalog.is_only_declared(created)
        if local_path(created.location or "") is None:
            pytest.skip("the suite does not know how to open the location")
        assert facade.list_tables(lance.ListTablesRequest(id=list(namespace), include_declared=False)).tables == []
        described = facade.describe_table(lance.DescribeTableRequest(id=list(created.path), check_declared=True))
        assert described.is_only_declared is True
