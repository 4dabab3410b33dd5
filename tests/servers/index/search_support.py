"""A lake for tests of the search, on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import make_url

from federator.model import Record
from federator.store import Index, migrations, open_index, verifications
from federator.views.search import engine
from tests.fixtures.index import new_index
from tests.fixtures.index_content import fill, namespace, table
from tests.fixtures.postgres import _execute

_COLUMNS = '[{"name":"unitPrice","type":"double"},{"name":"order_id","type":"bigint"}]'
LAKE: list[Record] = [
    namespace("lake", "sales"),
    table(
        "lake", "sales", "orders", owner="ann", properties={"team": "ops", "aws.secret_access_key": "hunter2"}, schema=_COLUMNS
    ),
    table("lake", "sales", "orders_2023", owner="ann", properties={"team": "ops eu"}),
    table("lake", "sales", "OrderItems", owner="bob", doc="What was bought: Größe, Stück"),
    table("lake", "hr", "people", owner="bob", doc="who orders what"),
    table("lake", "hr", "pre$orders", location="s3://other/x"),
    table("lake", "hr", "größe"),
    table("lake", "hr", "订单"),
    table("lake", "hr", "🚀"),
    table("lake", "hr", 'o\'brien AND "x" OR NEAR(y)'),
]
COPY: list[Record] = [
    table("copy", "default", "orderitems", location="s3://lake/sales/OrderItems.lance"),
    table("copy", "sales", "orders", owner="ann"),
]
STATES = {"s3://lake/sales/orders.lance": "valid", "s3://lake/hr/people.lance": "missing"}


@contextmanager
def make_indexes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Index]]:
    """Yield a function that makes an empty index on the database of the fixture's parameter."""
    opened: list[Index] = []

    def make() -> Index:
        if request.param == "sqlite":
            opened.append(new_index(tmp_path_factory.mktemp("search")))
        else:
            url, name = request.getfixturevalue("postgres_url"), f"search_{len(opened)}"
            _execute(url, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            _execute(url, f'CREATE DATABASE "{name}"')
            opened.append(open_index(make_url(url).set(database=name).render_as_string(hide_password=False)))
            migrations.upgrade_schema(opened[-1])
        return opened[-1]

    yield make
    for index in opened:
        index.close()


def fill_lake(index: Index) -> Index:
    fill(index, "lake", *LAKE)
    fill(index, "copy", *COPY)
    with index.write() as connection:
        checked = {
            "message": None,
            "version": 1,
            "rows": 1,
            "fragments": 1,
            "schema": None,
            "checked_at": 1.0,
            "checked_through": "lake",
            "access": "",
        }
        verifications.save_verifications(
            connection, [{"canonical": at, "location": at, "state": state, **checked} for at, state in STATES.items()]
        )
    return index


def ids(index: Index, text: str, **how: Any) -> list[str]:
    return [node.id for node in engine.search_tables(index, text, **how).nodes]


def paged(index: Index, text: str, limit: int, *, facets: bool = False) -> Iterator[engine.SearchPage]:
    after: str | None = ""
    while after is not None:
        page = engine.search_tables(index, text, limit=limit, after=after, facets=facets)
        yield page
        after = page.next
