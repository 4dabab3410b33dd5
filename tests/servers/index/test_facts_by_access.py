"""The upgrade of verification states that all sources of a store showed to those of the source that they were verified through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import sqlalchemy as sa

from federator.lance.inspection import Inspection
from federator.store import Index, migrations, stores, verifications
from federator.store.stores import SourceStore
from federator.views.verification_history import list_states_at
from tests.fixtures.index_reads import downgrade_schema

STORE = "minio:9000"
READ, DENIED, PATH = "s3://b/read.lance", "s3://b/denied.lance", "file:///lake/t.lance"


def test_old_facts_are_those_of_the_source_that_they_were_verified_through(make_index: Callable[[], Index]) -> None:
    index = make_index()
    downgrade_schema(index, "0026")
    facts = [
        {**asdict(Inspection("valid", "")), "canonical": READ, "checked_through": "one", "store": STORE},
        {**asdict(Inspection("denied", "")), "canonical": DENIED, "checked_through": "two", "store": STORE},
        {**asdict(Inspection("valid", "")), "canonical": PATH, "checked_through": "one", "store": ""},
    ]
    common = {"location": "x", "checked_at": 20.0, "since": 10.0}
    past = [
        {"canonical": canonical, "store": STORE, "state": "valid", "schema": "[]", "since": 1.0, "until": 10.0}
        for canonical in (READ, DENIED)
    ]
    with index.write() as connection:
        for name, rows in (
            ("dataset", [{**row, **common} for row in facts]),
            ("dataset_past", past),
            ("source_store", [{"source": source, "store": STORE} for source in ("one", "two", "moved")]),
        ):
            connection.execute(sa.table(name, *map(sa.column, rows[0])).insert(), rows)
    migrations.upgrade_schema(index)
    asked = [(source, canonical) for source in ("one", "two", "moved", "new") for canonical in (READ, DENIED, PATH)]

    def shown(at: float | None = None) -> set[tuple[str, str]]:
        with index.read() as connection:
            found = verifications.list_verifications(connection, asked) if at is None else list_states_at(connection, asked, at)
        return {one for one in found if one[1] != PATH}

    with index.read() as connection:
        assert verifications.find_verification(connection, "new", PATH) is not None, "paths need no options"
    assert shown() == shown(5.0) == set()
    named = {"one": SourceStore(STORE, "keys of one"), "two": SourceStore(STORE, "keys of two"), "new": SourceStore("", "")}
    for _ in range(2):
        with index.write() as connection:
            stores.save_stores(connection, {**named, "moved": SourceStore("elsewhere", "keys of one")})
        assert shown() == {("one", READ), ("moved", READ), ("two", DENIED)}
        assert shown(5.0) == {("one", READ), ("moved", READ)}, "the past of a table that a source cannot read is that of others"
    downgrade_schema(index, "0026")
    with index.read() as connection:
        left = connection.execute(sa.select(sa.column("canonical"), sa.column("store")).select_from(sa.table("dataset"))).all()
    assert [tuple(row) for row in left] == [(PATH, "")]
    index.close()
