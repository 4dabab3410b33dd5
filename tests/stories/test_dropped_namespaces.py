"""The limit of dropped namespaces, apart from that of tables: a mirror into a real Hive drops databases that it owns."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from federator.connector import Catalog
from federator.registry import get_connector
from tests.fixtures.product import HELD, MEMORY, Product, guards

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(300)]


def test_more_dropped_namespaces_than_their_limit_wait_for_a_person(hive2_uri: str, tmp_path: Path) -> None:
    names = [f"db{number}_{secrets.token_hex(4)}" for number in range(6)]
    product = Product(tmp_path)
    target = {"impl": "hive2", "uri": hive2_uri, "root": f"file:{tmp_path}/lake"}
    product.configure({"impl": MEMORY, "file": str(tmp_path / "origin.json")}, target, max_dropped_namespaces=1)
    origin = product.store("origin")
    for name in names:
        origin.add_table((name, "t"), f"file:{tmp_path}/{name}")
    product.sync()

    def databases(catalog: Catalog) -> list[str]:
        return [name for name in names if name in catalog.list_namespaces(())]

    connector = get_connector("hive2")
    with connector.open("there", connector.parse_settings({"uri": hive2_uri})) as catalog:
        assert databases(catalog) == names
        for name in names[:2]:
            origin.remove((name, "t"))
            origin.remove((name,))
        product.sync()
        assert [catalog.list_tables((name,)) for name in names[:3]] == [[], [], ["t"]]
        held = product.sync(HELD)
        assert (guards(held), databases(catalog)) == (["dropped_namespaces"], names)
        assert "2 namespaces dropped within 24 h, max_dropped_namespaces is 1" in held["plans"][0]["held"][0]
        product.approve(held)
        product.sync()
        assert databases(catalog) == names[2:]
