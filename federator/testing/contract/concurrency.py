"""Concurrency tests: eight threads use one namespace object, as in an API server."""

from __future__ import annotations

from collections.abc import Callable

import lance_namespace as lance

from federator.lance.facade import CatalogNamespace
from federator.model import Path, canonical_location
from federator.testing.contract.base import Contract, Location, requires, run_concurrently, supports_writes, unique_name

_THREADS = 8


class ConcurrencyContract(Contract):
    default_operation = "concurrent use"

    @requires(supports_writes)
    def test_eight_threads_use_one_namespace_and_do_not_mix(
        self, facade: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        def lifecycle(stem: str) -> Callable[[], tuple[str, str | None]]:
            def run_lifecycle() -> tuple[str, str | None]:
                stays, goes = f"{stem}_stays", f"{stem}_goes"
                for name in (stays, goes):
                    facade.declare_table(lance.DeclareTableRequest(id=[*namespace, name], location=location(name)))
                facade.deregister_table(lance.DeregisterTableRequest(id=[*namespace, goes]))
                assert stays in facade.list_tables(lance.ListTablesRequest(id=list(namespace))).tables
                described = facade.describe_table(lance.DescribeTableRequest(id=[*namespace, stays]))
                return stays, described.location

            return run_lifecycle

        stems = [unique_name("t") for _ in range(_THREADS)]
        results = run_concurrently([lifecycle(stem) for stem in stems])
        failed = [outcome for outcome in results if isinstance(outcome, Exception)]
        assert not failed, f"{len(failed)} of {_THREADS} threads failed: {failed}"
        for name, actual_location in results:
            assert canonical_location(actual_location) == canonical_location(location(name)), (
                f"{name} has another table's location"
            )
        listed = facade.list_tables(lance.ListTablesRequest(id=list(namespace))).tables
        assert listed == sorted(f"{stem}_stays" for stem in stems)

    @requires(lambda c: supports_writes(c) and c.races_for_names)
    def test_of_eight_that_declare_one_name_one_wins(
        self, facade: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        name = unique_name("t")
        request = lance.DeclareTableRequest(id=[*namespace, name], location=location(name))
        outcomes = run_concurrently([lambda: facade.declare_table(request)] * _THREADS)
        refused = [o for o in outcomes if isinstance(o, lance.TableAlreadyExistsError | lance.ConcurrentModificationError)]
        unexpected = [o for o in outcomes if isinstance(o, Exception) and o not in refused]
        assert not unexpected, f"neither declared nor refused as existing: {unexpected}"
        winners = _THREADS - len(refused)
        assert winners >= 1, f"no thread declared {name}"
        assert winners == 1 or not self.declares_once, f"{winners} threads declared {name} successfully"
        assert facade.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == [name]
