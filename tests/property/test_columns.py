"""Columns of Lance tables in catalogs: what a declaration sends for each Arrow type, and what comes back."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federator.lance.arrow_json import schema_to_json
from federator.lance.arrow_text import parse_arrow_type
from federator.lance.columns import declared_schema, list_columns
from federator_connectors._arrow import spark_types, unity_columns
from federator_connectors._arrow.arrow_types import record_to_arrow_schema

UNITS = ("s", "ms", "us", "ns")
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_ é-]{0,6}", fullmatch=True)
SIMPLE = [
    pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
    pa.binary_view(), pa.binary(16), pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    pa.month_day_nano_interval(), *(pa.duration(unit) for unit in UNITS), *(pa.timestamp(unit) for unit in UNITS), pa.uuid(),
    pa.json_(), pa.bool8(), pa.decimal32(7, 2), pa.decimal64(18, 0), pa.decimal256(76, 10), pa.decimal256(38, 0), pa.decimal128(5, -2),
]  # fmt: skip
zones = st.builds(pa.timestamp, st.sampled_from(UNITS), st.sampled_from(["UTC", "Europe/Berlin", "+02:00"]))
decimals = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: pa.decimal128(p, s)))
dictionaries = st.builds(
    pa.dictionary, st.sampled_from([pa.int8(), pa.uint32()]), st.sampled_from([pa.string(), pa.int64()]), st.booleans()
)


def _field(name: str, kind: pa.DataType, nullable: bool) -> pa.Field:
    return pa.field(name, kind, nullable or pa.types.is_null(kind))


def _nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    items = st.builds(_field, st.sampled_from(["item", "element"]), inner, st.booleans())
    members = st.lists(st.builds(_field, names, inner, st.booleans()), max_size=3, unique_by=lambda field: field.name)
    return st.one_of(
        *(items.map(kind) for kind in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)),
        st.builds(pa.list_, items, st.integers(0, 4096)),
        members.map(pa.struct),
        st.builds(pa.map_, st.sampled_from([pa.string(), pa.int32()]), inner),
    )


types = st.recursive(st.sampled_from(SIMPLE) | decimals | zones | dictionaries, _nested, max_leaves=6)
schemas = st.lists(
    st.builds(_field, names, types, st.booleans()), min_size=1, max_size=4, unique_by=lambda field: field.name
).map(pa.schema)


@given(types)
def test_a_type_comes_back_from_its_text(kind: pa.DataType) -> None:
    assert parse_arrow_type(str(kind)) == kind


@given(schemas)
def test_every_type_comes_back_from_unitys_columns(schema: pa.Schema) -> None:
    declared = declared_schema(list_columns(schema))
    returned = unity_columns.columns_to_schema(unity_columns.schema_to_columns(declared))
    assert returned == declared
    stored = record_to_arrow_schema(returned)
    assert stored == schema
    # DescribeTable says of the declaration what it says of the data.
    assert schema_to_json(stored) == schema_to_json(schema)


@given(schemas)
def test_a_type_of_spark_is_declared_as_one(schema: pa.Schema) -> None:
    for field, column in zip(schema, json.loads(declared_schema(list_columns(schema)) or ""), strict=True):
        try:
            spark = spark_types.parse_spark_type(column["type"])
        except ValueError:
            # Spark has no such type: Arrow's own text is there.
            assert column["type"] == str(field.type)
            continue
        alone = record_to_arrow_schema(json.dumps([{**column, "arrow": None}])).field(0).type
        assert ("arrow" in column) == (str(alone) != str(field.type))
        assert unity_columns.schema_to_columns(json.dumps([column]))[0]["type_name"] != "USER_DEFINED_TYPE", spark


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (pa.timestamp("us", "UTC"), {"type": "timestamp"}),
        (pa.timestamp("us"), {"type": "timestamp_ntz"}),
        (pa.timestamp("ns", "Asia/Tokyo"), {"type": "timestamp", "arrow": "timestamp[ns, tz=Asia/Tokyo]"}),
        (pa.list_(pa.float32(), 128), {"type": "array<float>", "arrow": "fixed_size_list<item: float>[128]"}),
        (pa.list_(pa.int64()), {"type": "array<bigint>"}),
        (pa.uint64(), {"type": "decimal(20,0)", "arrow": "uint64"}),
        (pa.time64("us"), {"type": "time64[us]"}),
        (pa.struct([pa.field("a b", pa.int8())]), {"type": "struct<`a b`:tinyint>"}),
        (pa.json_(), {"type": "string", "arrow": "extension<arrow.json>"}),
    ],
)
def test_the_table_of_types(kind: pa.DataType, column: dict[str, str]) -> None:
    assert json.loads(declared_schema(list_columns(pa.schema([("c", kind)]))) or "") == [{"name": "c", **column}]


def test_what_a_text_does_not_determine_is_kept_as_text() -> None:
    """An extension type with parameters, names that contain the notation's marks, and names of a map's entries."""
    odd = [
        pa.fixed_shape_tensor(pa.float32(), [2, 3]),
        pa.struct([pa.field("a: b", pa.int8())]),
        pa.map_(pa.field("k", pa.string(), nullable=False), pa.field("v", pa.int8())),
    ]
    for kind in odd:
        with pytest.raises(ValueError, match="not the text of an Arrow type"):
            parse_arrow_type(str(kind))
        assert json.loads(declared_schema(list_columns(pa.schema([("c", kind)]))) or "")[0]["type"] == str(kind)
    for text in (
        "",
        "list",
        "list<",
        "list<item: int8",
        "list<item: int8>>",
        "int",
        "int128",
        "struct<a>",
        "timestamp[m]",
        "int8 ",
    ):
        with pytest.raises(ValueError, match="Arrow"):
            parse_arrow_type(text)
    with pytest.raises(ValueError, match="64 levels"):
        parse_arrow_type("list<item: " * 70 + "int8" + ">" * 70)
