"""The feed of changes, where a connector has one: what it must name, and that it never says "nothing" where it does not know.

A feed may name more than has changed, and a namespace in place of what lies in it. What it must not do is to leave something out.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from federator.connector import Catalog, Changes, Unsupported
from federator.model import ROOT, Coverage, NamespaceRecord, Path, TableRecord, parent
from federator.testing.contract.base import MARK, SOURCE, Contract, Location, creates, fresh, needs, writes


def feeds(contract: type[Contract]) -> bool:
    return contract.connector.capabilities.change_feed and contract.keeps_feed


def _writes(contract: type[Contract]) -> bool:
    return feeds(contract) and writes(contract)


def _named(changes: Changes, path: Path) -> bool:
    """Whether a table, or what lies beside it, is to be looked at."""
    assert changes.full_crawl is None
    return path in changes.tables or parent(path) in changes.namespaces


class FeedFace(Contract):
    @needs(_writes)
    def test_the_feed_names_what_came_changed_and_went(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        cursor = catalog.change_cursor()
        made = self.declared(catalog, namespace, location)
        came = catalog.changes_since(cursor)
        assert _named(came, made.path)
        if self.connector.capabilities.can_alter and self.connector.capabilities.keeps_properties:
            made = catalog.update_table(made, replace(made, properties=MARK))
            changed = catalog.changes_since(came.cursor)
            assert _named(changed, made.path)
            came = changed
        catalog.deregister_table(made)
        assert _named(catalog.changes_since(came.cursor), made.path)
        assert _named(catalog.changes_since(cursor), made.path), "what is asked again is told again"

    @needs(_writes)
    def test_the_feed_names_nothing_twice_unasked(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        cursor = catalog.change_cursor()
        made = self.declared(catalog, namespace, location)
        after = catalog.changes_since(cursor)
        assert not _named(catalog.changes_since(after.cursor), made.path)

    @needs(lambda c: feeds(c) and creates(c))
    def test_the_feed_names_namespaces_that_came_and_went(self, catalog: Catalog, sibling: Path) -> None:
        cursor = catalog.change_cursor()
        catalog.create_namespace(NamespaceRecord(SOURCE, sibling))
        came = catalog.changes_since(cursor)
        assert came.full_crawl is None
        assert {sibling, parent(sibling)} & came.namespaces
        catalog.drop_namespace(sibling)
        assert {sibling, parent(sibling)} & catalog.changes_since(came.cursor).namespaces

    @needs(feeds)
    def test_a_cursor_that_the_feed_cannot_follow_asks_for_a_full_crawl(self, catalog: Catalog) -> None:
        told = catalog.changes_since("not a cursor of this feed")
        assert told.full_crawl
        assert not told.namespaces
        assert not told.tables
        assert catalog.changes_since(told.cursor).full_crawl is None, "its cursor is where to go on after that crawl"

    @needs(_writes)
    def test_some_namespaces_are_crawled_as_in_the_whole(
        self, catalog: Catalog, worker: Catalog, namespace: Path, location: Location
    ) -> None:
        tables = [self.declared(catalog, namespace, location) for _ in range(2)]
        wanted = [namespace] if namespace == ROOT else [parent(namespace), namespace]
        items = [item for shard in catalog.shards_of(wanted) for item in worker.read(shard)]
        coverage = {item.namespace: item for item in items if isinstance(item, Coverage)}
        assert coverage.keys() >= set(wanted)
        assert all(coverage[path].complete for path in wanted)
        assert {table.path for table in tables} == {item.path for item in items if isinstance(item, TableRecord)}
        gone = (*parent(namespace), fresh("nowhere")) if namespace else None
        if gone is not None:
            (nowhere,) = (
                item for shard in catalog.shards_of([gone]) for item in worker.read(shard) if isinstance(item, Coverage)
            )
            assert (nowhere.found, nowhere.complete) == (False, False)

    @needs(lambda c: c.connector.capabilities.change_feed and not c.keeps_feed)
    def test_a_server_without_a_feed_says_so(self, catalog: Catalog) -> None:
        for ask in (catalog.change_cursor, lambda: catalog.changes_since("")):
            with pytest.raises(Unsupported):
                ask()
