"""Crawls of random catalogs whose responses lose, repeat and cut rows: no existing object is removed."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from federator.model import (
    ROOT,
    Coverage,
    NamespaceRecord,
    Path,
    Record,
    TableRecord,
    failed_evidence,
    fold_digest,
    parent_path,
)
from federator.planning.crawls import SourceEvidence, validate_arrivals
from federator.planning.publication import Effect, Version, compare_versions, removable
from tests.prove.rules_in_memory import collect_arrivals

NAMES = ("a", "b")
NAMESPACES: list[Path] = [(x,) for x in NAMES] + [(x, y) for x in NAMES for y in NAMES]
TABLES = [(*namespace, name) for namespace in (ROOT, *NAMESPACES) for name in ("t", "u")]
Objects = dict[tuple[int, str], Record]


@st.composite
def catalogs(draw: st.DrawFn) -> list[Record]:
    """Namespaces with the ones above them, and tables in them, each of one of two contents."""
    chosen = draw(st.sets(st.sampled_from(NAMESPACES)))
    namespaces = sorted(chosen | {parent_path(path) for path in chosen if len(path) > 1})
    tables = draw(st.sets(st.sampled_from([path for path in TABLES if parent_path(path) in {ROOT, *namespaces}])))
    contents = draw(st.lists(st.sampled_from(("x", "y")), min_size=len(tables), max_size=len(tables)))
    found: list[Record] = [NamespaceRecord("lake", path) for path in namespaces]
    return found + [TableRecord("lake", path, doc=doc) for path, doc in zip(sorted(tables), contents, strict=True)]


def keyed(records: list[Record]) -> Objects:
    return {(int(isinstance(record, TableRecord)), record.key): record for record in records}


def listing(catalog: list[Record]) -> dict[Path, list[Record | Coverage]]:
    """What a sound crawl hands over, by namespace."""
    handed: dict[Path, list[Record | Coverage]] = {}
    for namespace in (ROOT, *(record.path for record in catalog if isinstance(record, NamespaceRecord))):
        inside = [record for record in catalog if parent_path(record.path) == namespace]
        coverage = Coverage("lake", namespace, records=len(inside), digest=fold_digest(record.digest for record in inside))
        handed[namespace] = [*inside, coverage]
    return handed


def spoil(namespace: Path, items: list[Record | Coverage], how: str, number: int) -> list[Record | Coverage]:
    if how == "lost" and items:
        return [item for at, item in enumerate(items) if at != number % len(items)]
    if how == "repeated" and items:
        return [*items, items[number % len(items)]]
    if how == "failed":
        return [
            *items[: number % (len(items) + 1)],
            Coverage("lake", namespace, failed_evidence(17, "cut off"), failed_evidence(17, "cut off")),
        ]
    return [] if how == "silent" else items


def publish(indexed: Mapping[tuple[int, str], Record], items: list[Record | Coverage]) -> tuple[Objects, SourceEvidence]:
    proven = validate_arrivals("lake", collect_arrivals(items))
    crawled = keyed([item for item in items if not isinstance(item, Coverage)])

    def version(record: Record | None) -> Version | None:
        return Version(record.kind, record.digest) if record is not None else None

    effects = {
        key: compare_versions(version(indexed.get(key)), version(crawled.get(key)), 1.0) for key in {**indexed, **crawled}
    }
    missing = [key for key, effect in effects.items() if effect is Effect.MISSING]
    removed = set(removable(missing, proven.coverage, proven.namespaces))
    return {key: crawled.get(key) or indexed[key] for key in effects if key not in removed}, proven


@given(catalogs(), catalogs())
def test_a_sound_crawl_makes_the_index_what_the_catalog_is(before: list[Record], now: list[Record]) -> None:
    items = [item for part in listing(now).values() for item in part]
    published, proven = publish(keyed(before), items)
    assert published == keyed(now)
    assert all(coverage.complete for coverage in proven.coverage.values())


@given(
    catalogs(),
    catalogs(),
    st.dictionaries(
        st.sampled_from([ROOT, *NAMESPACES]),
        st.tuples(st.sampled_from(("lost", "repeated", "failed", "silent")), st.integers(0, 7)),
        min_size=1,
    ),
)
def test_whatever_is_lost_on_the_way_nothing_that_exists_is_removed(
    before: list[Record], now: list[Record], faults: dict[Path, tuple[str, int]]
) -> None:
    items = [
        item for namespace, part in listing(now).items() for item in spoil(namespace, part, *faults.get(namespace, ("", 0)))
    ]
    published, proven = publish(keyed(before), items)
    there = keyed(now)
    assert {key for key in keyed(before) if key in there} <= set(published)
    spoiled = {namespace for namespace in faults if namespace in listing(now)}
    assert not [coverage for coverage in proven.coverage.values() if coverage.namespace in spoiled and coverage.complete]
