"""Agreement of the declarations of one dataset."""

from __future__ import annotations

from typing import Any

from federator.model import TableRecord
from federator.planning.comparison import Disagreement, find_disagreements
from federator.planning.ownership import OwnershipMarker, append_comment_marker


def table(source: str, **fields: Any) -> TableRecord:
    return TableRecord(source, ("s", "t"), "s3://b/t", **fields)


def test_one_declaration_and_equal_ones_agree() -> None:
    same = {"properties": {"team": "eu"}, "doc": "x", "schema": '[{"name":"id","type":"int"}]'}
    assert (
        find_disagreements([])
        == find_disagreements([table("a", **same)])
        == find_disagreements([table("a", **same), table("b", **same)])
        == []
    )


def test_a_missing_field_is_no_disagreement() -> None:
    assert (
        find_disagreements([table("a", properties={"team": "eu"}, doc="x"), table("b"), table("c", schema="[]", doc="")]) == []
    )


def test_every_contradiction_names_its_field_and_sides() -> None:
    one = table("a", properties={"team": "eu", "tier": "1"}, doc="x", schema='[{"name":"id","type":"int"}]')
    two = table("b", properties={"team": "us", "tier": "1"}, doc="y", schema='[{"name":"key","type":"int"}]')
    sides = [["a$s$t", "c$s$t"], ["b$s$t"]]
    assert find_disagreements([two, one, table("c", properties={"team": "eu"}, doc="x", schema=one.schema)]) == [
        Disagreement("doc", sides), Disagreement("property:team", sides), Disagreement("schema", sides),
    ]  # fmt: skip


def test_marks_statistics_type_names_and_case_are_no_contradiction() -> None:
    mark = OwnershipMarker("prod", "m", "a$s$t")
    marked = table(
        "b", properties={**mark.to_properties(("s", "t")), "numFiles": "2"}, doc=append_comment_marker("x", mark, ("s", "t")),
        schema='[{"name":"id","type":"bigint"}]',
    )  # fmt: skip
    other = {"federator.instance": "other", "numFiles": "1"}
    assert find_disagreements([table("a", properties=other, doc="x", schema='[{"name":"ID","type":"long"}]'), marked]) == []
