"""Whether declarations of one place agree."""

from __future__ import annotations

from typing import Any

from federator.index.agreement import Disagreement, disagreements
from federator.model import TableRecord
from federator.planning.marks import Mark, with_comment


def table(source: str, **fields: Any) -> TableRecord:
    return TableRecord(source, ("s", "t"), "s3://b/t", **fields)


def test_one_declaration_and_equal_ones_agree() -> None:
    same = {"properties": {"team": "eu"}, "doc": "x", "schema": '[{"name":"id","type":"int"}]'}
    assert (
        disagreements([])
        == disagreements([table("a", **same)])
        == disagreements([table("a", **same), table("b", **same)])
        == []
    )


def test_what_is_left_out_contradicts_nothing() -> None:
    assert disagreements([table("a", properties={"team": "eu"}, doc="x"), table("b"), table("c", schema="[]", doc="")]) == []


def test_every_contradiction_names_its_field_and_sides() -> None:
    one = table("a", properties={"team": "eu", "tier": "1"}, doc="x", schema='[{"name":"id","type":"int"}]')
    two = table("b", properties={"team": "us", "tier": "1"}, doc="y", schema='[{"name":"key","type":"int"}]')
    sides = [["a$s$t", "c$s$t"], ["b$s$t"]]
    assert disagreements([two, one, table("c", properties={"team": "eu"}, doc="x", schema=one.schema)]) == [
        Disagreement("doc", sides), Disagreement("property:team", sides), Disagreement("schema", sides),
    ]  # fmt: skip


def test_marks_statistics_type_names_and_case_are_no_contradiction() -> None:
    mark = Mark("prod", "m", "a$s$t")
    ours = table(
        "b", properties={**mark.properties(("s", "t")), "numFiles": "2"}, doc=with_comment("x", mark, ("s", "t")),
        schema='[{"name":"id","type":"bigint"}]',
    )  # fmt: skip
    other = {"federator.instance": "other", "numFiles": "1"}
    assert disagreements([table("a", properties=other, doc="x", schema='[{"name":"ID","type":"long"}]'), ours]) == []
