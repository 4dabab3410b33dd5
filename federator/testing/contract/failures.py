"""What a catalog does not say: unreachable and denied are errors, never an empty listing and never a missing object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import lance_namespace as lance
import pytest

from federator.connector import Catalog, PermissionDenied, ServiceUnavailable, Unauthenticated
from federator.connector.namespace import CatalogNamespace, namespace_class
from federator.model import Coverage, Path
from federator.testing.contract.base import SOURCE, Contract, Location, fresh, needs, together, writes

_DENIED = (PermissionDenied.code, Unauthenticated.code)


class FailureFace(Contract):
    @needs(lambda c: c.unreachable is not None)
    def test_an_unreachable_catalog_is_unavailable_whatever_is_asked(
        self, properties: dict[str, str], namespace: Path, location: Location
    ) -> None:
        face = self._face(properties, self.unreachable or {})
        attempts = self._operations(face, namespace, location)
        answers = dict(zip(attempts, together(list(attempts.values())), strict=True))
        face.close()
        wrong = {name: answer for name, answer in answers.items() if not isinstance(answer, lance.ServiceUnavailableError)}
        assert not wrong, f"answered although nothing was there to answer: {wrong}"

    @needs(lambda c: c.unreachable is not None)
    def test_a_shard_that_cannot_be_read_is_covered_as_failed(
        self, catalog: Catalog, properties: dict[str, str], namespace: Path
    ) -> None:
        shards = [shard for shard in catalog.shards() if namespace in shard.namespaces]
        assert shards, "a namespace in no shard"
        settings = self.connector.configure({**properties, **(self.unreachable or {})})
        try:
            with self.connector.open(SOURCE, settings) as dead:
                items = [item for shard in shards for item in dead.read(shard)]
        except ServiceUnavailable:
            return
        (coverage,) = (item for item in items if isinstance(item, Coverage) and item.namespace == namespace)
        assert not coverage.complete, "nothing was read and it counts as complete, so that everything in it would be gone"
        assert coverage.found, "not reached is not gone"
        assert coverage.presence.code == ServiceUnavailable.code
        assert coverage.presence.reason

    @needs(lambda c: c.deny is not None and writes(c))
    def test_what_is_denied_is_neither_empty_nor_gone(
        self, catalog: Catalog, properties: dict[str, str], namespace: Path, location: Location
    ) -> None:
        table = self.declared(catalog, namespace, location)
        denied = self.deny(namespace)
        face = self._face(properties, denied)
        with pytest.raises((lance.PermissionDeniedError, lance.UnauthenticatedError)):
            face.list_tables(lance.ListTablesRequest(id=list(namespace)))
        face.close()
        with self.connector.open(SOURCE, self.connector.configure({**properties, **denied})) as limited:
            with suppress(PermissionDenied, Unauthenticated):
                assert not limited.observe(table.path).absent, "a table whose namespace is denied looks deregistered"
            items = [item for shard in limited.shards() for item in limited.read(shard)]
        (coverage,) = (item for item in items if isinstance(item, Coverage) and item.namespace == namespace)
        assert not coverage.complete
        assert coverage.found, "denied is not gone"
        assert coverage.presence.code in _DENIED

    def _face(self, properties: Mapping[str, str], others: Mapping[str, str]) -> CatalogNamespace:
        return namespace_class(self.connector, "ContractNamespace")(**{**properties, **others})

    def _operations(self, face: CatalogNamespace, namespace: Path, location: Location) -> dict[str, Callable[[], Any]]:
        """What asks the catalog, each with a request of its own."""
        capabilities = self.connector.capabilities
        inside, table = list(namespace), [*namespace, fresh("t")]
        asked: dict[str, Callable[[], Any]] = {
            "list_tables": lambda: face.list_tables(lance.ListTablesRequest(id=inside)),
            "describe_table": lambda: face.describe_table(lance.DescribeTableRequest(id=table)),
            "table_exists": lambda: face.table_exists(lance.TableExistsRequest(id=table)),
        }
        if capabilities.max_depth > 0:
            asked |= {
                "list_namespaces": lambda: face.list_namespaces(lance.ListNamespacesRequest(id=[])),
                "describe_namespace": lambda: face.describe_namespace(lance.DescribeNamespaceRequest(id=inside)),
                "namespace_exists": lambda: face.namespace_exists(lance.NamespaceExistsRequest(id=inside)),
                # Never the root's, which is refused before the catalog is asked.
                "drop_namespace": lambda: face.drop_namespace(lance.DropNamespaceRequest(id=inside or ["ns"], mode="Skip")),
            }
        if len(namespace) in capabilities.creates_namespaces_at:
            made = [*namespace[:-1], fresh("made")]
            asked["create_namespace"] = lambda: face.create_namespace(lance.CreateNamespaceRequest(id=made, mode="ExistOk"))
        if capabilities.writes_tables:
            place = location(table[-1])
            asked |= {
                "declare_table": lambda: face.declare_table(lance.DeclareTableRequest(id=table, location=place)),
                "deregister_table": lambda: face.deregister_table(lance.DeregisterTableRequest(id=table)),
            }
        return asked
