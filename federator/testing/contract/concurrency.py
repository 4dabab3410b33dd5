"""Many at once: one namespace object is used from eight threads, as an API server does."""

from __future__ import annotations

from collections.abc import Callable

import lance_namespace as lance

from federator.connector.namespace import CatalogNamespace
from federator.model import Path, canonical_location
from federator.testing.contract.base import Contract, Location, fresh, needs, together, writes

_THREADS = 8


class ConcurrencyFace(Contract):
    @needs(writes)
    def test_eight_threads_use_one_namespace_and_do_not_mix(
        self, face: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        def life(stem: str) -> Callable[[], tuple[str, str | None]]:
            def live() -> tuple[str, str | None]:
                stays, goes = f"{stem}_stays", f"{stem}_goes"
                for name in (stays, goes):
                    face.declare_table(lance.DeclareTableRequest(id=[*namespace, name], location=location(name)))
                face.deregister_table(lance.DeregisterTableRequest(id=[*namespace, goes]))
                assert stays in face.list_tables(lance.ListTablesRequest(id=list(namespace))).tables
                described = face.describe_table(lance.DescribeTableRequest(id=[*namespace, stays]))
                return stays, described.location

            return live

        stems = [fresh("t") for _ in range(_THREADS)]
        lives = together([life(stem) for stem in stems])
        failed = [outcome for outcome in lives if isinstance(outcome, Exception)]
        assert not failed, f"{len(failed)} of {_THREADS} threads failed: {failed}"
        for name, place in lives:
            assert canonical_location(place) == canonical_location(location(name)), f"{name} has another table's location"
        listed = face.list_tables(lance.ListTablesRequest(id=list(namespace))).tables
        assert listed == sorted(f"{stem}_stays" for stem in stems)

    @needs(writes)
    def test_of_eight_that_declare_one_name_one_wins(self, face: CatalogNamespace, namespace: Path, location: Location) -> None:
        name = fresh("t")
        wanted = lance.DeclareTableRequest(id=[*namespace, name], location=location(name))
        outcomes = together([lambda: face.declare_table(wanted)] * _THREADS)
        refused = [o for o in outcomes if isinstance(o, lance.TableAlreadyExistsError | lance.ConcurrentModificationError)]
        others = [o for o in outcomes if isinstance(o, Exception) and o not in refused]
        assert not others, f"neither declared nor refused as existing: {others}"
        winners = _THREADS - len(refused)
        assert winners >= 1, f"nobody declared {name}"
        assert winners == 1 or not self.declares_once, f"{winners} threads were told that they declared {name}"
        assert face.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == [name]
