"""Types of Arrow and Spark, as exports name them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from federator.integrations.tables import item_type, type_family

FAMILIES = {
    pa.bool_(): "bool", pa.int8(): "int", pa.uint64(): "int", pa.float16(): "float", pa.float64(): "float",
    pa.decimal128(10, 2): "decimal", pa.string(): "string", pa.large_string(): "string", pa.string_view(): "string",
    pa.binary(): "binary", pa.large_binary(): "binary", pa.binary(4): "binary", pa.date32(): "date", pa.date64(): "date",
    pa.time64("us"): "time", pa.timestamp("us", tz="UTC"): "timestamp", pa.list_(pa.int32()): "list", pa.large_list(pa.int32()): "list",
    pa.list_(pa.float32(), 8): "list", pa.struct({"a": pa.int8()}): "struct", pa.map_(pa.string(), pa.int8()): "map",
    pa.duration("us"): "other", pa.null(): "other", pa.dictionary(pa.int8(), pa.string()): "other",
}  # fmt: skip


@pytest.mark.parametrize(("kind", "family"), FAMILIES.items(), ids=str)
def test_each_arrow_type_has_a_family(kind: pa.DataType, family: str) -> None:
    assert type_family(str(kind)) == family


@pytest.mark.parametrize(
    ("text", "family"),
    {"boolean": "bool", "bigint": "int", "tinyint": "int", "varchar(20)": "string", "array<float>": "list",
     "interval day to second": "other", "timestamp_ntz": "timestamp", "struct<a:int>": "struct", "": "other"}.items(),
)  # fmt: skip
def test_each_spark_type_has_a_family(text: str, family: str) -> None:
    assert type_family(text) == family


@pytest.mark.parametrize(
    ("text", "item"),
    [
        (str(pa.list_(pa.float32(), 8)), "float"),
        (str(pa.list_(pa.field("item", pa.int64(), nullable=False))), "int64"),
        (str(pa.list_(pa.list_(pa.string()))), "list<item: string>"),
        (str(pa.list_(pa.struct({"a": pa.int8()}))), "struct<a: int8>"),
        ("array<bigint>", "bigint"),
        ("array<struct<a:int>>", "struct<a:int>"),
        ("int", ""),
    ],
)
def test_the_type_of_items(text: str, item: str) -> None:
    assert item_type(text) == item
