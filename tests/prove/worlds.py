"""What a world begins with: kinds of catalogs, who mirrors whom, and each mirror's policies; all drawn from one generator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from federator.connector import Capabilities, NameRules
from federator.model import Path
from federator.planning.rule import MirrorRule

_ONE, _TWO = ("database",), ("catalog", "schema")
_WORDS = NameRules(pattern=r"\w+", folds_case=True)


@dataclass(frozen=True)
class Kind:
    """A kind of catalog: capabilities, whether its objects have an identity of their own, and whether the catalog itself has one."""

    name: str
    capabilities: Capabilities
    has_ids: bool = True
    has_identity: bool = False

    @property
    def depth(self) -> int:
        """How many levels its own tables lie under."""
        return self.capabilities.min_depth


def _kind(name: str, depth: int, *, deepest: int | None = None, has_ids: bool = True, **fields: Any) -> Kind:
    levels = {0: (), 1: _ONE, 2: _TWO}[depth]
    made = {"creates_namespaces_at": frozenset({1, 2, 3}), "levels": levels} | fields
    has_identity = name in ("hive", "glue", "unity", "polaris")
    return Kind(name, Capabilities(min_depth=depth, max_depth=deepest or depth, **made), has_ids, has_identity)


KINDS = {
    kind.name: kind
    for kind in (
        _kind("hive", 1, names=NameRules(folds_case=True), change_feed=True),
        _kind("glue", 1, names=NameRules(folds_case=True), property_value_length=60, listing_filtered=True,
              drop_cascades=True),
        _kind("unity", 2, names=_WORDS, can_alter=False, keeps_properties=False, listing_filtered=True),
        _kind("polaris", 1, deepest=2, can_alter=False, listing_filtered=True),
        _kind("rest", 1, deepest=3),
        _kind("folder", 0, can_alter=False, keeps_properties=False, keeps_comment=False, has_ids=False,
              makes_location=True, creates_namespaces_at=frozenset()),
        _kind("bare", 1, keeps_properties=False, keeps_comment=False),
        _kind("nameless", 1, keeps_properties=False, keeps_comment=False, has_ids=False),
        _kind("settled", 1, deepest=2, creates_namespaces_at=frozenset(), keeps_properties=False, names=_WORDS),
    )
}  # fmt: skip

# Which instance mirrors from which catalog into which; a catalog's kind is drawn from the letters' list.
TOPOLOGIES: dict[str, tuple[tuple[int, int, int], ...]] = {
    "one-way": ((0, 0, 1), (0, 0, 2)),
    "two-way": ((0, 0, 1), (0, 1, 0)),
    "ring": ((0, 0, 1), (0, 1, 2), (0, 2, 0)),
    "star-in": ((0, 0, 2), (0, 1, 2)),
    "chain": ((0, 0, 1), (0, 1, 2)),
    "two-instances": ((0, 0, 2), (1, 1, 2)),
    "rivals": ((0, 0, 2), (1, 0, 2)),
    "there-and-back": ((0, 0, 1), (1, 1, 0)),
}
_TOPOLOGY_NAMES = tuple(TOPOLOGIES)
_TARGETS = ("hive", "glue", "glue", "rest", "rest", "rest", "unity", "polaris", "folder", "bare", "nameless", "settled")
_ORIGINS = ("hive", "glue", "rest", "rest", "unity", "polaris")


@dataclass(frozen=True)
class Blueprint:
    """Kinds of the catalogs, and the mirrors of each instance."""

    topology: str
    kinds: tuple[Kind, ...]
    rules: tuple[tuple[MirrorRule, ...], ...]
    #: applications end after two failures
    impatient: bool = False


def draw(rng: Random, number: int) -> Blueprint:
    """A world of three catalogs; ``number`` chooses the topology in turn."""
    topology = _TOPOLOGY_NAMES[number % len(TOPOLOGIES)]
    edges = TOPOLOGIES[topology]
    origins = {origin for _, origin, _ in edges}
    kinds = tuple(KINDS[rng.choice(_ORIGINS if catalog in origins else _TARGETS)] for catalog in range(3))
    rules: list[list[MirrorRule]] = [[], []]
    for instance, origin, target in edges:
        name = f"m{len(rules[instance])}"
        rules[instance].append(_rule(rng, topology, name, origin, target, kinds))
    return Blueprint(topology, kinds, tuple(tuple(mirrors) for mirrors in rules if mirrors), rng.random() < 0.2)


def native_path(kind: Kind, number: int, name: str) -> Path:
    """Where a user of a catalog puts a table: in one of two namespaces, if it has any."""
    return (*("main", "st"[number % 4 == 0])[2 - kind.depth :], name)


def _rule(rng: Random, topology: str, name: str, origin: int, target: int, kinds: tuple[Kind, ...]) -> MirrorRule:
    rule = MirrorRule(
        name=name,
        origin=f"c{origin}",
        target=f"c{target}",
        namespace=_namespace(rng, kinds[origin], kinds[target]),
        transitive=topology in ("ring", "chain", "there-and-back") and rng.random() < 0.7,
        on_missing="recreate" if rng.random() < 0.6 else "report",
        prune_unselected=rng.random() < 0.15,
        source_priority=("c0", "c1", "c2"),
    )
    for chance, change in _POLICIES:
        if rng.random() < chance:
            rule = replace(rule, **change)
    return interned(rule)


_POLICIES: tuple[tuple[float, dict[str, Any]], ...] = (
    (0.15, {"on_conflict": "adopt_if_same_location"}),
    (0.15, {"on_conflict": "source_priority"}),
    (0.06, {"delete": "never"}),
    (0.08, {"on_drift": "report"}),
    (0.75, {"update_by_recreate": True}),
    (0.07, {"misses_before_delete": 3}),
    (0.10, {"max_delete_percent": 50.0}),
    (0.05, {"max_changes": 2}),
    (0.10, {"max_dropped_namespaces": 0}),
    (0.03, {"approval": "required"}),
    # The world's clock begins on a Thursday.
    (0.04, {"windows": ("Sat,Sun 00:00-24:00",)}),
    (0.03, {"windows": ("Mon-Fri 00:00-24:00",), "window_scope": "all"}),
    (0.05, {"only_valid": True}),
    (0.10, {"declare_missing": True}),
    (0.05, {"prefix": "p_"}),
    (0.05, {"deny_properties": ("long",)}),
)


_known: dict[MirrorRule, MirrorRule] = {}


def interned(rule: MirrorRule) -> MirrorRule:
    """The one rule of all that are equal, so that its digests are computed once in many runs."""
    if len(_known) > 20_000:
        _known.clear()
    return _known.setdefault(rule, rule)


def _namespace(rng: Random, origin: Kind, target: Kind) -> str | None:
    """A template that fits the target's depth, but for a few that do not."""
    chance = rng.random()
    if chance < 0.03:
        return "x$y$z$w"
    if target.depth == 0:
        return ""
    if chance < 0.12:
        return "flat" if target.depth == 1 else "main$flat"
    last = f"{{{origin.capabilities.levels[-1]}}}" if origin.capabilities.levels else "flat"
    if target.depth == 2:
        return f"main${last}" if origin.depth == 1 else None
    if chance < 0.22:
        return f"{last}_of_c"
    return last
