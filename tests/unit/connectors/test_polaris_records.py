"""Conversion between records and the responses of Polaris."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federator.model import NamespaceRecord, TableRecord
from federator_connectors._iceberg.base_catalog import namespace_properties, namespace_record
from federator_connectors._polaris import records

PATH = ("lake", "sales", "orders")
_texts = st.dictionaries(st.text(max_size=5).filter(lambda key: key not in ("table_type", "location")), st.text(max_size=5))


@pytest.mark.parametrize("name", ["lance", "LANCE", "Lance"])
def test_the_format_makes_a_lance_table(name: str) -> None:
    assert records.is_lance({"format": name})


@pytest.mark.parametrize(
    "table", [{"format": "delta"}, {"format": None}, {}, {"format": "delta", "properties": {"table_type": "lance"}}]
)
def test_any_other_format_makes_none(table: dict[str, object]) -> None:
    assert not records.is_lance(table)


def test_a_table_with_the_least_that_polaris_answers() -> None:
    table = {"name": "orders", "format": "lance", "base-location": None, "doc": None, "properties": {}}
    assert records.table_record("x", PATH, table) == TableRecord("x", PATH)


@given(_texts, st.none() | st.text(min_size=1, max_size=5))
def test_a_declared_table_is_read_back_as_it_was_wanted(properties: dict[str, str], doc: str | None) -> None:
    wanted = TableRecord("x", PATH, "s3://b/orders.lance", properties, doc=doc)
    sent = records.build_table_request(wanted)
    assert (sent["name"], sent["format"], sent["properties"]["table_type"]) == ("orders", "lance", "lance")
    back = records.table_record("x", PATH, sent)
    if doc is None or doc != properties.get("doc"):
        assert back == wanted
    else:
        # One text, told once.
        assert (back.doc, back.properties) == (None, properties)


def test_the_property_doc_describes_a_table() -> None:
    sent = records.build_table_request(TableRecord("x", PATH, "s3://b/o", {"doc": "All orders."}))
    assert (sent["doc"], sent["properties"]["doc"]) == ("All orders.", "All orders.")
    named = records.build_table_request(TableRecord("x", PATH, "s3://b/o", {"doc": "All orders."}, doc="Told by its origin."))
    assert named["doc"] == "Told by its origin."
    assert records.table_record("x", PATH, named).doc == "Told by its origin."


@given(_texts, st.none() | st.text(min_size=1, max_size=5))
def test_a_created_namespace_is_read_back_as_it_was_wanted(properties: dict[str, str], location: str | None) -> None:
    wanted = NamespaceRecord("x", PATH[:2], properties, location)
    assert namespace_record("x", PATH[:2], namespace_properties(wanted)) == wanted


def test_a_namespace_has_icebergs_names_for_comment_and_owner() -> None:
    sent = namespace_properties(NamespaceRecord("x", PATH[:2], {}, doc="Sales.", owner="me"))
    assert sent == {"comment": "Sales.", "owner": "me"}
