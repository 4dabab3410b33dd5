"""Datasets on both databases: the same result in spite of their different orders of texts."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from sqlalchemy import update

from federator.model import Coverage, LocationAliases, failed_evidence, path_key
from federator.store import Index, coverage, revisions, roots, verifications
from federator.store import tables as t
from federator.store.leases import acquire_lease
from federator.views import datasets, extracts
from tests.fixtures.index_content import fill, table

ODD = ("A", "a", "B", "_", "-x", "a b", "é", "t", "t!", "t/deep", "t//x", "t0", "tz/deep")


@pytest.fixture
def index(either_index: Index) -> Index:
    return either_index


def test_locations_names_and_contents(index: Index) -> None:
    fill(index, "lake", *(table("lake", "s", str(number), location=f"s3://b/{key}") for number, key in enumerate(ODD)))
    fill(index, "copy", table("copy", "s", "t", location="s3://ap/t/"), table("copy", "s", "u", location="s3://ap/u"))
    with index.write() as connection:
        verifications.refresh_location_aliases(connection, aliases := LocationAliases.from_prefixes({"s3://ap": "s3://b"}))
    wanted = {f"s3://b/{key}" for key in (*ODD, "u")}
    for limit in (1, 3, 100):
        found: list[str] = []
        after: str | None = ""
        while after is not None:
            page = datasets.list_datasets(index, after=after, limit=limit)
            found += [view.location for view in page.datasets]
            after = page.next
        assert len(found) == len(set(found))
        assert set(found) == wanted
    view = datasets.get_dataset(index, "s3a://ap/t", aliases)
    assert [declared.id for declared in view.declarations] == ["copy$s$t", "lake$s$7"]
    assert sorted(view.holds) == ["s3://b/t//x", "s3://b/t/deep"]
    assert datasets.get_dataset(index, "s3://b/t//x", aliases).inside == ["s3://b/t"]
    only = datasets.list_datasets(index, datasets.DatasetFilter(declared_in="copy"))
    assert [view.location for view in only.datasets] == ["s3://b/t", "s3://b/u"]


def test_a_draft_changes_nothing_before_it_is_published(index: Index) -> None:
    fill(index, "lake", table("lake", "s", "t", location="s3://b/old"))
    with acquire_lease(index, "source:lake") as lease:
        draft = revisions.begin_draft(index, lease, "lake", "run-2", 1.0)
        revisions.close_records(index, lease, draft, [(1, "s$t")])
        revisions.add_records(index, lease, draft, [revisions.incoming_row(table("lake", "s", "t", location="s3://b/new"))])
        assert [view.location for view in datasets.list_datasets(index).datasets] == ["s3://b/old"]
        revisions.publish_draft(index, lease, draft, added=0, changed=1, removed=0, values={})
        assert [view.location for view in datasets.list_datasets(index).datasets] == ["s3://b/new"]


def test_draft_coverage_is_not_visible_before_it_is_published(index: Index) -> None:
    fill(index, "lake", table("lake", "s", "t"))
    denied = Coverage("lake", ("s",), failed_evidence(15, "denied"), failed_evidence(15, "denied"))
    listed = Coverage("lake", ("s",), records=1)
    with acquire_lease(index, "source:lake") as lease:
        draft = revisions.begin_draft(index, lease, "lake", "run-2", 1.0)
        with index.write() as connection:
            coverage.write_coverage(connection, draft, [denied], {})
        revisions.publish_draft(index, lease, draft, added=0, changed=0, removed=0, values={})
        draft = revisions.begin_draft(index, lease, "lake", "run-3", 2.0)
        with index.write() as connection:
            coverage.write_coverage(connection, draft, [listed], {denied.key: denied})
        assert _extracted_presence(index) == {"s": "failed"}
        with index.read() as connection:
            assert roots.list_partially_crawled_sources(connection) == ["lake"]
        revisions.publish_draft(index, lease, draft, added=0, changed=0, removed=0, values={})
    assert _extracted_presence(index) == {"s": "complete"}
    with index.read() as connection:
        assert roots.list_partially_crawled_sources(connection) == []


def _extracted_presence(index: Index) -> dict[str, str]:
    """The presence of each namespace in the extract ``coverage``, by path key."""
    (extract,) = (extract for extract in extracts.EXTRACTS if extract.name == "coverage")
    with index.read_consistently() as connection:
        rows = [row for batch in extract.batches(connection) for row in batch.to_pylist()]
    assert len(rows) == len({tuple(row["namespace"]) for row in rows})
    return {path_key(row["namespace"]): row["presence"] for row in rows}


def test_due_is_what_is_new_changed_old_with_the_worst_first_or_unreachable(index: Index) -> None:
    names = ("new", "changed", "unreachable", "missing", "valid", "fresh")
    fill(index, "lake", *(table("lake", "s", name, location=f"s3://b/{name}") for name in names))
    now = time.time()
    states = {"changed": ("valid", now - 5), "unreachable": ("unreachable", now + 5), "missing": ("missing", now - 900)}
    states |= {"valid": ("valid", now - 1000), "fresh": ("valid", now + 5)}
    nothing = dict.fromkeys(("message", "version", "rows", "fragments", "schema"))
    with index.write() as connection:
        # Published long ago, so that only what is published later counts as changed.
        connection.execute(update(t.revision).values(published_at=now - 5000))
        verifications.save_verifications(
            connection,
            [
                {"canonical": f"s3://b/{name}", "location": f"s3://b/{name}", "state": state, "checked_at": at, **nothing}
                | {"checked_through": "lake", "access": ""}
                for name, (state, at) in states.items()
            ],
        )
    fill(index, "lake", table("lake", "s", "changed", location="s3a://b/changed", doc="new"), run="run-2")
    with index.read() as connection:
        due = verifications.list_due_locations(connection, "lake", now=now, max_age=600, limit=100)
        assert [location.canonical.rpartition("/")[2] for location in due] == [
            "new",
            "changed",
            "missing",
            "valid",
            "unreachable",
        ]
        assert due[1].location == "s3a://b/changed"
        assert len(verifications.list_due_locations(connection, "lake", now=now, max_age=600, limit=2)) == 2


def test_a_copy_that_is_declared_later_does_not_take_over_the_inspection(index: Index) -> None:
    """A target of a mirror may have no credentials for the storage: through it, a valid table would be unreachable."""
    orders = table("lake", "s", "orders", location="s3://b/orders")
    fill(index, "lake", orders)
    now = time.time()
    valid = dict.fromkeys(("message", "version", "rows", "fragments", "schema")) | {
        "state": "valid",
        "checked_through": "lake",
        "access": "",
    }

    def check(state: str, age: float) -> None:
        row = valid | {"canonical": "s3://b/orders", "location": "s3://b/orders", "state": state, "checked_at": now - age}
        with index.write() as connection:
            verifications.save_verifications(connection, [row])

    def due(source: str, *, stricter: Sequence[str] = (), only_shared: bool = False) -> int:
        with index.read() as connection:
            return len(
                verifications.list_due_locations(
                    connection, source, now=now, max_age=600, limit=9, stricter=stricter, only_shared=only_shared
                )
            )

    check("valid", 0)
    assert due("lake", stricter=["copies"]) == 0
    fill(index, "copies", table("copies", "s", "orders", location="s3://b/orders"), run="run-2")
    assert (due("copies"), due("lake"), due("lake", stricter=["copies"])) == (0, 0, 1)
    with index.read() as connection:
        for declaring, verifiers in ((["copies"], {"lake"}), (["lake"], set()), (["other"], set()), ([], set())):
            assert verifications.list_verifiers_of_redeclared(connection, declaring) == verifiers
    for source, stricter, expected in (("lake", "copies", 1), ("lake", "other", 0), ("copies", "copies", 0)):
        assert due(source, stricter=[stricter], only_shared=True) == expected
    with index.read() as connection:
        assert verifications.list_declaring_sources(connection, "", ["s3://b/orders", "s3://b/none"]) == {
            "s3://b/orders": {"copies", "lake"}
        }
    check("valid", 700)
    assert (due("lake"), due("copies")) == (1, 0)
    check("valid", 1300)
    assert due("copies") == 1, "the other source does not inspect it"
    for state in ("missing", "unreachable"):
        check(state, 100)
        assert due("copies") == 1
    check("valid", 100)
    fill(index, "lake", gone=[orders.path], run="run-3")
    assert due("copies") == 1, "the other source no longer declares it"
