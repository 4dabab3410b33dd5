"""Schemas between Arrow, Spark's text and Unity's columns: every type that Lance can hold comes back as it was."""

from __future__ import annotations

import json
from typing import Any

import lance_namespace as lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_namespace_urllib3_client.models.json_arrow_schema import JsonArrowSchema

from federator.connector import InvalidInput
from federator_connectors._arrow import arrow, columns, schemas, spark
from federator_connectors._arrow import lance as lance_json

UNITS = ("s", "ms", "us", "ns")
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
metadata = st.none() | st.dictionaries(names, names, max_size=2)


class BFloat16(pa.ExtensionType):  # type: ignore[misc]
    """As pylance has it, under another name, since pylance may be loaded as well."""

    def __init__(self) -> None:
        super().__init__(pa.binary(2), "federator.test.bfloat16")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> BFloat16:
        return cls()


pa.register_extension_type(BFloat16())

SIMPLE = [
    pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
    pa.binary_view(), pa.binary(16), pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    pa.month_day_nano_interval(), pa.uuid(), pa.json_(), pa.bool8(), BFloat16(), pa.fixed_shape_tensor(pa.float32(), [2, 3]),
    pa.opaque(pa.binary(), "geometry", "postgis"), *(pa.duration(unit) for unit in UNITS), *(pa.timestamp(unit) for unit in UNITS),
    pa.decimal32(7, 2), pa.decimal64(18, 0), pa.decimal256(76, 10), pa.decimal128(5, -2),
]  # fmt: skip


def _field(name: str, kind: pa.DataType, nullable: bool, told: dict[str, str] | None) -> pa.Field:
    # Arrow knows no null that is not nullable.
    return pa.field(name, kind, nullable or pa.types.is_null(kind), told)


def _decimals() -> st.SearchStrategy[pa.DataType]:
    return st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: pa.decimal128(p, s)))


def _nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    items = st.builds(lambda kind, nullable: _field("item", kind, nullable, None), inner, st.booleans())
    fields = st.builds(_field, names, inner, st.booleans(), metadata)
    return st.one_of(
        items.map(pa.list_), items.map(pa.large_list), items.map(pa.list_view),
        st.builds(pa.list_, items, st.integers(0, 4096)),
        st.lists(fields, max_size=3, unique_by=lambda field: field.name).map(pa.struct),
        st.builds(lambda key, item: pa.map_(key, item), st.sampled_from([pa.string(), pa.int32(), pa.uuid()]), inner),
    )  # fmt: skip


zones = st.builds(pa.timestamp, st.sampled_from(UNITS), st.sampled_from(["UTC", "Europe/Berlin", "+02:00"]))
dictionaries = st.builds(
    pa.dictionary, st.sampled_from([pa.int8(), pa.uint32()]), st.sampled_from([pa.string(), pa.int64()]), st.booleans()
)
types = st.recursive(st.sampled_from(SIMPLE) | _decimals() | zones | dictionaries, _nested, max_leaves=6)
fields = st.builds(_field, names, types, st.booleans(), metadata)
arrow_schemas = st.lists(fields, max_size=4, unique_by=lambda field: field.name).map(pa.schema)


@given(arrow_schemas)
def test_a_schema_comes_back_from_a_record(schema: pa.Schema) -> None:
    assert schemas.arrow_schema(schemas.record_schema(schema)).equals(schema, check_metadata=True)


@given(arrow_schemas)
def test_a_schema_comes_back_from_unitys_columns(schema: pa.Schema) -> None:
    made = schemas.unity_columns(schema)
    assert schemas.of_unity_columns(list(reversed(made))).equals(schema, check_metadata=True)
    # What the crawl reads is what was declared.
    assert columns.schema_of(made) == schemas.record_schema(schema)
    assert columns.columns_of(columns.schema_of(made)) == made


@settings(deadline=None, max_examples=50)
@given(arrow_schemas)
def test_unitys_own_models_and_lances_take_every_schema(schema: pa.Schema) -> None:
    from unitycatalog.client.models import ColumnInfo

    for column in schemas.unity_columns(schema):
        assert ColumnInfo.from_dict(dict(column)) is not None
    told = JsonArrowSchema.model_validate(lance_json.json_schema(schema))
    assert [field.name for field in told.fields] == schema.names
    lance.DescribeTableResponse(schema=told)


@given(types)
def test_the_text_of_a_type_can_be_read(kind: pa.DataType) -> None:
    text = spark.text_of(arrow.tree_of(kind))
    assert spark.text_of(spark.parse(text)) == text


@pytest.mark.parametrize(
    ("kind", "text", "name", "back"),
    [
        (pa.int64(), "bigint", "LONG", pa.int64()),
        (pa.uint8(), "smallint", "SHORT", pa.int16()),
        (pa.uint64(), "decimal(20,0)", "DECIMAL", pa.decimal128(20, 0)),
        (pa.float16(), "float", "FLOAT", pa.float32()),
        (pa.large_string(), "string", "STRING", pa.string()),
        (pa.large_binary(), "binary", "BINARY", pa.binary()),
        (pa.date64(), "date", "DATE", pa.date32()),
        (pa.timestamp("ns", "Asia/Tokyo"), "timestamp", "TIMESTAMP", pa.timestamp("us", "UTC")),
        (pa.timestamp("ms"), "timestamp_ntz", "TIMESTAMP_NTZ", pa.timestamp("us")),
        (pa.time64("us"), "string", "STRING", pa.string()),
        (pa.duration("ns"), "interval day to second", "INTERVAL", pa.duration("us")),
        (pa.null(), "void", "NULL", pa.null()),
        (pa.list_(pa.float32(), 768), "array<float>", "ARRAY", pa.list_(pa.float32())),
        (pa.map_(pa.string(), pa.int8()), "map<string,tinyint>", "MAP", pa.map_(pa.string(), pa.int8())),
        (pa.struct([("a b", pa.bool_())]), "struct<`a b`:boolean>", "STRUCT", pa.struct([("a b", pa.bool_())])),
        (pa.dictionary(pa.int8(), pa.string()), "string", "STRING", pa.string()),
        (pa.uuid(), "binary", "BINARY", pa.binary()),
        (pa.json_(), "string", "STRING", pa.string()),
        (BFloat16(), "binary", "BINARY", pa.binary()),
        (pa.decimal256(60, 2), "string", "STRING", pa.string()),
        (pa.decimal128(38, 38), "decimal(38,38)", "DECIMAL", pa.decimal128(38, 38)),
    ],
)
def test_the_nearest_type_for_those_who_read_no_more(kind: pa.DataType, text: str, name: str, back: pa.DataType) -> None:
    (column,) = schemas.unity_columns(pa.schema([("c", kind)]))
    assert (column["type_text"], column["type_name"]) == (text, name)
    plain = json.loads(column["type_json"])
    plain["metadata"].pop(columns.EXACT, None)
    bare = {**column, "type_json": json.dumps(plain)}
    assert schemas.of_unity_columns([bare]).field("c").type == back
    assert schemas.of_unity_columns([{**column, "type_json": None}]).field("c").type == back


def test_what_goes_along_is_only_what_the_text_does_not_say() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.list_(pa.float32(), 4))])
    first, second = json.loads(schemas.record_schema(schema) or "")
    assert first == {"name": "id", "nullable": False, "type": "bigint"}
    assert set(second) == {"name", "type", "arrow"}


def test_precision_interval_and_comment_have_their_own_places() -> None:
    schema = pa.schema([
        pa.field("d", pa.decimal128(10, 2), metadata={"comment": "money"}),
        pa.field("i", pa.duration("us")),
    ])  # fmt: skip
    money, span = schemas.unity_columns(schema)
    assert (money["type_precision"], money["type_scale"], money["comment"], money["position"]) == (10, 2, "money", 0)
    assert (span["type_interval_type"], span["position"], span["comment"]) == ("DAY TO SECOND", 1, None)
    assert json.loads(money["type_json"]) == {
        "name": "d", "type": "decimal(10,2)", "nullable": True, "metadata": {"comment": "money"},
    }  # fmt: skip


def test_a_changed_column_is_believed_and_not_its_old_type() -> None:
    (column,) = schemas.unity_columns(pa.schema([("v", pa.list_(pa.float32(), 4))]))
    told = json.loads(column["type_json"]) | {"type": "string"}
    changed = {**column, "type_text": "string", "type_name": "STRING", "type_json": json.dumps(told)}
    assert schemas.of_unity_columns([changed]).field("v").type == pa.string()
    listed = json.loads(columns.schema_of([changed]) or "")
    assert schemas.arrow_schema(json.dumps(listed)).field("v").type == pa.string()


@pytest.mark.parametrize("column", [{"type_json": '"long"'}, {"type_json": "not json"}, {"type_json": None}, {}])
def test_a_column_with_a_bare_type_or_with_text_alone(column: dict[str, Any]) -> None:
    assert schemas.of_unity_columns([{"name": "a", "type_text": "bigint", **column}]).field("a").type == pa.int64()


@pytest.mark.parametrize(
    "text", ["variant", "geography(4326)", "uniontype<int,string>", "array<", "struct<a>", "decimal(1,2,3)", ""]
)
def test_a_type_without_like_is_named(text: str) -> None:
    with pytest.raises(InvalidInput, match="the column 'odd'"):
        schemas.of_unity_columns([{"name": "odd", "type_text": text}])


def test_a_type_of_another_catalog_is_kept_as_it_is() -> None:
    schema = json.dumps([{"name": "u", "type": "uniontype<int,string>"}, {"name": "n"}])
    odd, untyped = columns.columns_of(schema)
    assert (odd["type_name"], odd["type_text"]) == ("USER_DEFINED_TYPE", "uniontype<int,string>")
    assert untyped["type_text"] == "string"
    assert json.loads(columns.schema_of([odd]) or "") == [{"name": "u", "type": "uniontype<int,string>"}]


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("INT", "integer"), ("decimal", "decimal(10,0)"), ("decimal(5)", "decimal(5,0)"), ("Decimal( 5 , 2 )", "decimal(5,2)"),
        ("varchar(10)", "varchar(10)"), ("interval year", "interval year"), ("INTERVAL DAY TO SECOND", "interval day to second"),
        ("numeric(3,1)", "decimal(3,1)"), ("timestamp_ltz", "timestamp"),
        (
            "struct<a: int NOT NULL COMMENT 'it''s', `b``c` string>",
            {"type": "struct", "fields": [
                {"name": "a", "type": "integer", "nullable": False, "metadata": {"comment": "it's"}},
                {"name": "b`c", "type": "string", "nullable": True, "metadata": {}},
            ]},
        ),
        ("array<array<map<string,date>>>", {"type": "array", "containsNull": True, "elementType": {
            "type": "array", "containsNull": True, "elementType": {
                "type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True}}}),
        ("struct<>", {"type": "struct", "fields": []}),
    ],
)  # fmt: skip
def test_texts_as_hive_glue_and_spark_write_them(text: str, tree: spark.Tree) -> None:
    assert spark.parse(text) == tree


def test_no_columns_are_no_schema() -> None:
    assert columns.schema_of([]) is None
    assert columns.columns_of(None) == []
    assert schemas.record_schema(pa.schema([])) is None
    assert schemas.arrow_schema(None) == pa.schema([])


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (pa.int8(), {"type": "int8"}), (pa.float16(), {"type": "float16"}), (pa.string(), {"type": "utf8"}),
        (pa.large_string(), {"type": "large_utf8"}), (pa.timestamp("us", "UTC"), {"type": "timestamp"}),
        (pa.date32(), {"type": "date32"}), (pa.time64("us"), {"type": "time64"}), (pa.bool_(), {"type": "bool"}),
        (pa.decimal128(10, 2), {"type": "decimal128", "length": 10002}), (pa.binary(4), {"type": "fixed_size_binary", "length": 4}),
        (pa.dictionary(pa.int8(), pa.string()), {"type": "utf8"}),
        (pa.list_(pa.float32(), 4), {"type": "fixed_size_list", "length": 4, "fields": [
            {"name": "item", "nullable": True, "type": {"type": "float32"}}]}),
        (pa.large_list(pa.int8()), {"type": "large_list", "fields": [{"name": "item", "nullable": True, "type": {"type": "int8"}}]}),
    ],
)  # fmt: skip
def test_types_are_named_as_pylance_names_them(kind: pa.DataType, told: dict[str, Any]) -> None:
    """Each as pylance 14 describes such a table of a directory."""
    assert lance_json.json_schema(pa.schema([("c", kind)])) == {"fields": [{"name": "c", "nullable": True, "type": told}]}


@pytest.mark.parametrize(
    "field",
    [
        pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
        pa.field("vector", pa.list_(pa.float16(), 1536), nullable=False),
        # Of an extension that this process does not know, Arrow shows the storage and these two.
        pa.field("x", pa.binary(2), metadata={"ARROW:extension:name": "lance.bfloat16", "ARROW:extension:metadata": ""}),
    ],
)
def test_what_lance_makes_of_arrow_comes_back(field: pa.Field) -> None:
    schema = pa.schema([field])
    assert schemas.of_unity_columns(schemas.unity_columns(schema)).equals(schema, check_metadata=True)
