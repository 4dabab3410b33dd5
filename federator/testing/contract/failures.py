"""Failure tests: an unreachable catalog or a denied listing is an error, never an empty listing or an absent object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import lance_namespace as lance
import pytest

from federator.connector import Catalog, PermissionDenied, ServiceUnavailable, Unauthenticated
from federator.lance.facade import CatalogNamespace, facade_class
from federator.model import Coverage, Path
from federator.testing.contract.base import SOURCE, Contract, Location, requires, run_concurrently, supports_writes, unique_name

_DENIED = (PermissionDenied.code, Unauthenticated.code)


class FailureContract(Contract):
    default_operation = "failures"

    @requires(lambda c: c.unreachable is not None)
    def test_an_unreachable_catalog_is_unavailable_whatever_is_asked(
        self, properties: dict[str, str], namespace: Path, location: Location
    ) -> None:
        facade = self._open_facade(properties, self.unreachable or {})
        operations = self._operations(facade, namespace, location)
        results = dict(zip(operations, run_concurrently(list(operations.values())), strict=True))
        facade.close()
        wrong = {name: result for name, result in results.items() if not isinstance(result, lance.ServiceUnavailableError)}
        assert not wrong, f"succeeded although the catalog is unreachable: {wrong}"

    @requires(lambda c: c.unreachable is not None)
    def test_a_shard_that_cannot_be_read_is_covered_as_failed(
        self, catalog: Catalog, properties: dict[str, str], namespace: Path
    ) -> None:
        shards = [shard for shard in catalog.plan_shards() if namespace in shard.namespaces]
        assert shards, "a namespace in no shard"
        settings = self.connector.parse_settings({**properties, **(self.unreachable or {})})
        try:
            with self.connector.open(SOURCE, settings) as dead:
                items = [item for shard in shards for item in dead.read_shard(shard)]
        except ServiceUnavailable:
            return
        (coverage,) = (item for item in items if isinstance(item, Coverage) and item.namespace == namespace)
        assert not coverage.complete, "nothing was read, but it is complete: all objects in it would be absent"
        assert coverage.found, "unreachable is not absent"
        assert coverage.presence.code == ServiceUnavailable.code
        assert coverage.presence.reason

    @requires(lambda c: c.deny is not None and supports_writes(c))
    def test_what_is_denied_is_neither_empty_nor_gone(
        self, catalog: Catalog, properties: dict[str, str], namespace: Path, location: Location
    ) -> None:
        table = self.declare_new_table(catalog, namespace, location)
        denied = self.deny(namespace)
        facade = self._open_facade(properties, denied)
        with pytest.raises((lance.PermissionDeniedError, lance.UnauthenticatedError)):
            facade.list_tables(lance.ListTablesRequest(id=list(namespace)))
        facade.close()
        with self.connector.open(SOURCE, self.connector.parse_settings({**properties, **denied})) as limited:
            with suppress(PermissionDenied, Unauthenticated):
                assert not limited.observe(table.path).is_absent, "a table whose namespace is denied looks deregistered"
            items = [item for shard in limited.plan_shards() for item in limited.read_shard(shard)]
        (coverage,) = (item for item in items if isinstance(item, Coverage) and item.namespace == namespace)
        assert not coverage.complete
        assert coverage.found, "denied is not absent"
        assert coverage.presence.code in _DENIED

    def _open_facade(self, properties: Mapping[str, str], overrides: Mapping[str, str]) -> CatalogNamespace:
        return facade_class(self.connector, "ContractNamespace")(**{**properties, **overrides})

    def _operations(self, facade: CatalogNamespace, namespace: Path, location: Location) -> dict[str, Callable[[], Any]]:
        """Return the operations that call the catalog, each with its own request."""
        capabilities = self.connector.capabilities
        namespace_id, table = list(namespace), [*namespace, unique_name("t")]
        operations: dict[str, Callable[[], Any]] = {
            "list_tables": lambda: facade.list_tables(lance.ListTablesRequest(id=namespace_id)),
            "describe_table": lambda: facade.describe_table(lance.DescribeTableRequest(id=table)),
            "table_exists": lambda: facade.table_exists(lance.TableExistsRequest(id=table)),
        }
        if capabilities.max_depth > 0:
            operations |= {
                "list_namespaces": lambda: facade.list_namespaces(lance.ListNamespacesRequest(id=[])),
                "describe_namespace": lambda: facade.describe_namespace(lance.DescribeNamespaceRequest(id=namespace_id)),
                "namespace_exists": lambda: facade.namespace_exists(lance.NamespaceExistsRequest(id=namespace_id)),
                # Do not drop the root: this is refused before the catalog is called.
                "drop_namespace": lambda: facade.drop_namespace(
                    lance.DropNamespaceRequest(id=namespace_id or ["ns"], mode="Skip")
                ),
            }
        if len(namespace) in capabilities.creates_namespaces_at:
            new_namespace = [*namespace[:-1], unique_name("made")]
            operations["create_namespace"] = lambda: facade.create_namespace(
                lance.CreateNamespaceRequest(id=new_namespace, mode="ExistOk")
            )
        if capabilities.writes_tables:
            table_location = location(table[-1])
            operations |= {
                "declare_table": lambda: facade.declare_table(lance.DeclareTableRequest(id=table, location=table_location)),
                "deregister_table": lambda: facade.deregister_table(lance.DeregisterTableRequest(id=table)),
            }
        return operations
