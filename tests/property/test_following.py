"""Crawls that follow a feed, over random catalogs: the index comes to what a full crawl finds, and nothing is ever taken for gone that
is there, whatever the feed leaves out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import example, given
from hypothesis import strategies as st

from federator.connector import CatalogChanges, NamespaceNotFound
from federator.model import COMPLETE, ROOT, Coverage, Path, failed_evidence, iter_ancestors, parent_path, path_key
from federator.planning.crawls import READ_BY_NAME, Arrival, validate_arrivals
from federator.planning.evidence import is_proven_absent
from federator.planning.incremental import IndexedSource, carried_coverage, namespaces_to_read, tables_to_read

NAMES = ("a", "b")
NAMESPACES = [(x,) for x in NAMES] + [(x, y) for x in NAMES for y in NAMES]
TABLES = [(*namespace, name) for namespace in (ROOT, *NAMESPACES) for name in ("t", "u")]


@dataclass
class Catalog:
    """Namespaces and tables, each of a version; and the names that its feed has told."""

    objects: dict[tuple[Path, bool], int] = field(default_factory=dict)
    namespaces: set[Path] = field(default_factory=set)
    tables: set[Path] = field(default_factory=set)

    def put(self, path: Path, *, is_table: bool, version: int) -> None:
        for above in reversed(list(iter_ancestors(path))):
            if above != ROOT and (above, False) not in self.objects:
                self._record(above, False)
                self.objects[above, False] = 0
        self._record(path, is_table)
        self.objects[path, is_table] = version

    def remove(self, path: Path) -> None:
        for at, is_table in [key for key in self.objects if key[0][: len(path)] == path]:
            self._record(at, is_table)
            del self.objects[at, is_table]

    def _record(self, path: Path, is_table: bool) -> None:
        (self.tables if is_table else self.namespaces).add(path)

    def take(self) -> CatalogChanges:
        changes = CatalogChanges("c", frozenset(self.namespaces), frozenset(self.tables))
        self.namespaces, self.tables = set(), set()
        return changes

    def has(self, namespace: Path) -> bool:
        return namespace == ROOT or (namespace, False) in self.objects


@dataclass
class Crawler:
    """The pipeline's crawl, its diff and its publishing, in a few lines: what is read replaces what the index has directly in it."""

    index: dict[tuple[Path, bool], int] = field(default_factory=dict)
    coverage: dict[str, Coverage] = field(default_factory=dict)
    revision: int = 0

    def crawl(self, catalog: Catalog, changes: CatalogChanges | None, denied: set[Path]) -> set[Path]:
        """Returns the namespaces that it read as a whole. ``changes``: None reads everything."""
        read, by_name = self._scope(catalog, changes, denied)
        listed_objects = {
            key: version
            for key, version in catalog.objects.items()
            if key in by_name or (parent_path(key[0]) in read and parent_path(key[0]) not in denied)
        }
        named = {parent_path(path) for path, _ in by_name}
        evidence = validate_arrivals(
            "s",
            self._arrivals(catalog, read, named, denied, listed_objects),
            read=None if changes is None else {path_key(path) for path in read},
            carried={} if changes is None else carried_coverage(self.coverage, read, self.revision),
            named={path_key(path) for path in named},
        )
        self.coverage, listed = evidence.coverage, evidence.namespaces
        missing = [key for key in self.index if key not in listed_objects and (changes is None or parent_path(key[0]) in read)]
        for key in missing:
            if is_proven_absent(key[0], self.coverage, listed):
                del self.index[key]
        self.index |= listed_objects
        self.revision += 1
        return read

    @staticmethod
    def _arrivals(
        catalog: Catalog, read: set[Path], named: set[Path], denied: set[Path], listed_objects: Iterable[tuple[Path, bool]]
    ) -> dict[str, Arrival]:
        refused, unknown = failed_evidence(15, "denied"), failed_evidence(NamespaceNotFound.code, "not found")
        arrivals = {path_key(path): Arrival(Coverage("s", path, READ_BY_NAME), 1) for path in named}
        for path in read:
            evidence = refused if path in denied else COMPLETE if catalog.has(path) else unknown
            arrivals[path_key(path)] = Arrival(Coverage("s", path, evidence, evidence, found=evidence is not unknown), 1)
        for path, is_table in listed_objects:
            if not is_table:
                arrivals.setdefault(path_key(path), Arrival()).listed = True
        return arrivals

    def _scope(
        self, catalog: Catalog, changes: CatalogChanges | None, denied: set[Path]
    ) -> tuple[set[Path], set[tuple[Path, bool]]]:
        """Return the namespaces to read as a whole, and the objects to read by name."""
        if changes is None:
            return {path for path, is_table in catalog.objects if not is_table} | {ROOT}, set()
        recorded = {path_key(path) for path, is_table in self.index if not is_table}
        named = [path for path, is_table in self.index if is_table and path in changes.tables]
        known = IndexedSource(coverage=self.coverage, namespaces=recorded, named=named)
        read, by_name = set(namespaces_to_read(changes, known)), set[tuple[Path, bool]]()
        for tables in tables_to_read(changes, known, read):
            there = {name for name in tables.names if ((*tables.namespace, name), True) in catalog.objects}
            if tables.namespace in denied or not tables.expected <= there:
                read.add(tables.namespace)
            else:
                by_name |= {((*tables.namespace, name), True) for name in there}
        return read, by_name


steps = st.lists(
    st.tuples(
        st.lists(
            st.one_of(
                st.tuples(st.just("table"), st.sampled_from(TABLES)),
                st.tuples(st.just("namespace"), st.sampled_from(NAMESPACES)),
                st.tuples(st.just("remove"), st.sampled_from([*NAMESPACES, *TABLES])),
            ),
            max_size=5,
        ),
        st.sets(st.sampled_from([ROOT, *NAMESPACES]), max_size=2),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


def _change(catalog: Catalog, edits: list[tuple[str, Path]], version: int) -> None:
    for what, path in edits:
        if what == "remove":
            catalog.remove(path)
        else:
            catalog.put(path, is_table=what == "table", version=version)


@given(steps)
@example([([("table", ("b", "a", "t"))], {("b",)}, False), ([("remove", ("b",))], {ROOT}, False)])
def test_following_a_feed_comes_to_what_a_full_crawl_finds(story: list[tuple[list[tuple[str, Path]], set[Path], bool]]) -> None:
    catalog, crawler = Catalog(), Crawler()
    crawler.crawl(catalog, None, set())
    catalog.take()
    for version, (edits, denied, _) in enumerate(story, 1):
        _change(catalog, edits, version)
        before = dict(crawler.index)
        crawler.crawl(catalog, catalog.take(), denied)
        lost = before.keys() - crawler.index.keys()
        assert not lost & catalog.objects.keys(), "what is there was taken for gone"
    # Everybody may read again: what could not be read is read, one level a crawl at most.
    for _ in range(3):
        crawler.crawl(catalog, catalog.take(), set())
    assert crawler.index == catalog.objects
    assert crawler.crawl(catalog, catalog.take(), set()) == set(), "nothing is left to read"


@given(steps)
def test_a_feed_that_leaves_out_what_it_likes_makes_nothing_gone(
    story: list[tuple[list[tuple[str, Path]], set[Path], bool]],
) -> None:
    catalog, crawler = Catalog(), Crawler()
    for version, (edits, denied, silent) in enumerate(story, 1):
        _change(catalog, edits, version)
        changes = catalog.take()
        before = dict(crawler.index)
        crawler.crawl(catalog, CatalogChanges("c") if silent else changes, denied)
        lost = before.keys() - crawler.index.keys()
        assert not lost & catalog.objects.keys()
    crawler.crawl(catalog, None, set())
    assert crawler.index == catalog.objects
