"""Schemas in Spark's text form, as Unity's columns, in Arrow and in Lance's JSON."""

from __future__ import annotations

import json
from typing import Any

import lance_namespace as lance
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lance_namespace_urllib3_client.models.json_arrow_schema import JsonArrowSchema

from federator.connector import InvalidInput
from federator.lance.arrow_json import schema_to_json
from federator.model import canonical_json
from federator_connectors._arrow import spark_types, unity_columns
from federator_connectors._arrow.arrow_types import record_to_arrow_schema

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


def _field(name: str, kind: pa.DataType, nullable: bool, metadata: dict[str, str] | None) -> pa.Field:
    # Arrow knows no null that is not nullable.
    return pa.field(name, kind, nullable or pa.types.is_null(kind), metadata)


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


SPARK_SIMPLE = [
    "void", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp",
    "timestamp_ntz", "decimal(20,0)", "decimal(38,38)", "varchar(10)", "char(3)", "interval day to second", "interval year to month",
]  # fmt: skip


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _nested_texts(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    members = st.lists(st.builds(lambda name, text: f"{_quoted(name)}:{text}", names, inner), max_size=3, unique=True)
    return st.one_of(
        inner.map(lambda text: f"array<{text}>"),
        inner.map(lambda text: f"map<string,{text}>"),
        members.map(lambda texts: f"struct<{','.join(texts)}>"),
    )


def _column(name: str, text: str, nullable: bool, doc: str | None) -> dict[str, Any]:
    return {"name": name, "type": text} | ({} if nullable else {"nullable": False}) | ({} if doc is None else {"doc": doc})


columns = st.builds(
    _column, names, st.recursive(st.sampled_from(SPARK_SIMPLE), _nested_texts, max_leaves=6), st.booleans(), st.none() | names
)
spark_schemas = st.lists(columns, min_size=1, max_size=4, unique_by=lambda column: str(column["name"])).map(canonical_json)


@given(spark_schemas)
def test_a_schema_comes_back_from_unitys_columns(schema: str) -> None:
    created = unity_columns.schema_to_columns(schema)
    # What the crawl reads is what was declared.
    assert unity_columns.columns_to_schema(list(reversed(created))) == schema


@given(spark_schemas)
@example('[{"name":"a","nullable":false,"type":"void"}]')
def test_every_column_has_an_arrow_field(schema: str) -> None:
    rows = [(field.name, field.nullable, field.metadata) for field in record_to_arrow_schema(schema)]
    assert rows == [
        (
            column["name"],
            column.get("nullable", True) or column["type"] == "void",
            {b"comment": column["doc"].encode()} if "doc" in column else None,
        )
        for column in json.loads(schema)
    ]


@settings(max_examples=50)
@given(spark_schemas)
def test_unitys_own_models_take_every_schema(schema: str) -> None:
    from unitycatalog.client.models import ColumnInfo

    for column in unity_columns.schema_to_columns(schema):
        assert ColumnInfo.from_dict(dict(column)) is not None


@settings(max_examples=50)
@given(arrow_schemas)
def test_lances_own_models_take_every_schema(schema: pa.Schema) -> None:
    schema_model = JsonArrowSchema.model_validate(schema_to_json(schema))
    assert [field.name for field in schema_model.fields] == schema.names
    lance.DescribeTableResponse(schema=schema_model)


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("bigint", "LONG", pa.int64()),
        ("smallint", "SHORT", pa.int16()),
        ("decimal(20,0)", "DECIMAL", pa.decimal128(20, 0)),
        ("float", "FLOAT", pa.float32()),
        ("string", "STRING", pa.string()),
        ("binary", "BINARY", pa.binary()),
        ("date", "DATE", pa.date32()),
        ("timestamp", "TIMESTAMP", pa.timestamp("us", "UTC")),
        ("timestamp_ntz", "TIMESTAMP_NTZ", pa.timestamp("us")),
        ("interval day to second", "INTERVAL", pa.duration("us")),
        ("interval year to month", "INTERVAL", pa.month_day_nano_interval()),
        ("void", "NULL", pa.null()),
        ("array<float>", "ARRAY", pa.list_(pa.float32())),
        ("map<string,tinyint>", "MAP", pa.map_(pa.string(), pa.int8())),
        ("struct<`a b`:boolean>", "STRUCT", pa.struct([("a b", pa.bool_())])),
        ("struct<a:int not null>", "STRUCT", pa.struct([pa.field("a", pa.int32(), nullable=False)])),
        ("decimal(38,38)", "DECIMAL", pa.decimal128(38, 38)),
        ("varchar(10)", "STRING", pa.string()),
        ("char(3)", "CHAR", pa.string()),
    ],
)
def test_a_spark_type_has_a_name_in_unity_and_a_type_in_arrow(text: str, name: str, kind: pa.DataType) -> None:
    schema = json.dumps([{"name": "c", "type": text}])
    (column,) = unity_columns.schema_to_columns(schema)
    assert (column["type_text"], column["type_name"]) == (text, name)
    assert record_to_arrow_schema(schema).field("c").type == kind


def test_precision_interval_and_comment_have_their_own_fields() -> None:
    schema = [{"name": "d", "type": "decimal(10,2)", "doc": "money"}, {"name": "i", "type": "interval day to second"}]
    money, span = unity_columns.schema_to_columns(json.dumps(schema))
    assert (money["type_precision"], money["type_scale"], money["comment"], money["position"]) == (10, 2, "money", 0)
    assert (span["type_interval_type"], span["position"], span["comment"]) == ("DAY TO SECOND", 1, None)
    assert json.loads(money["type_json"]) == {
        "name": "d", "type": "decimal(10,2)", "nullable": True, "metadata": {"comment": "money"},
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", ["variant", "geography(4326)", "uniontype<int,string>", "array<", "struct<a>", "decimal(1,2,3)", ""]
)
def test_a_type_without_like_is_named(text: str) -> None:
    with pytest.raises(InvalidInput, match="the column 'odd'"):
        record_to_arrow_schema(json.dumps([{"name": "odd", "type": text}]))


def test_a_type_of_another_catalog_is_kept_as_it_is() -> None:
    schema = json.dumps([{"name": "u", "type": "uniontype<int,string>"}, {"name": "n"}])
    odd, untyped = unity_columns.schema_to_columns(schema)
    assert (odd["type_name"], odd["type_text"]) == ("USER_DEFINED_TYPE", "uniontype<int,string>")
    assert untyped["type_text"] == "string"
    assert json.loads(unity_columns.columns_to_schema([odd]) or "") == [{"name": "u", "type": "uniontype<int,string>"}]


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
def test_texts_as_hive_glue_and_spark_write_them(text: str, tree: spark_types.SparkType) -> None:
    assert spark_types.parse_spark_type(text) == tree


def test_no_columns_are_no_schema() -> None:
    assert unity_columns.columns_to_schema([]) is None
    # As lance-namespace-impls declares a table.
    placeholder = {
        "name": "__placeholder_id",
        "type_text": "LONG",
        "type_json": '{"type":"long"}',
        "type_name": "LONG",
        "position": 0,
    }
    assert unity_columns.columns_to_schema([placeholder]) is None
    assert unity_columns.schema_to_columns(None) == []
    assert record_to_arrow_schema(None) == pa.schema([])


@pytest.mark.parametrize(
    ("kind", "expected"),
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
def test_types_are_named_as_pylance_names_them(kind: pa.DataType, expected: dict[str, Any]) -> None:
    """Each as pylance 14 describes such a table of a directory."""
    assert schema_to_json(pa.schema([("c", kind)])) == {"fields": [{"name": "c", "nullable": True, "type": expected}]}
