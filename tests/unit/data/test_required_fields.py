"""Rows with a null in a field that allows none are refused in our words, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from federator.connector.errors import TableSchemaValidation
from federator.data.required_fields import find_null
from federator.data.rows import create_table, insert_rows, merge_rows
from federator.data.table_handle import TableHandle

ID = pa.field("id", pa.int64(), nullable=False)
ITEM = pa.field("item", pa.float32(), nullable=False)
ROWS: dict[str, tuple[pa.Field, list[Any], str]] = {
    "a column": (ID, [1, None], "id"),
    "a struct": (pa.field("s", pa.struct([ID]), nullable=False), [{"id": 1}, None], "s"),
    "a field of a struct": (pa.field("s", pa.struct([ID])), [None, {"id": None}], "s.id"),
    "an element": (pa.field("l", pa.list_(ITEM)), [None, [1.0, None]], "l.item"),
    "an element of a vector": (pa.field("v", pa.list_(ITEM, 2)), [[1.0, 2.0], [1.0, None]], "v.item"),
    "an element of a struct": (pa.field("s", pa.struct([pa.field("l", pa.list_(ITEM))])), [{"l": [None]}], "s.l.item"),
}


def _stream(tmp_path: Path, field: pa.Field, values: list[Any]) -> str:
    """A file with one row in the first batch and the others in a second one."""
    path, schema = tmp_path / "rows", pa.schema([field])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as stream:
        for part in (values[:1], values[1:]):
            stream.write_batch(pa.record_batch([pa.array(part, field.type)], schema=schema))
    return str(path)


WRITES: dict[str, Callable[[TableHandle, str, str], object]] = {
    "create": lambda table, rows, _: create_table(table, input=rows),
    "insert": lambda table, rows, _: insert_rows(table, input=rows),
    "overwrite": lambda table, rows, _: insert_rows(table, input=rows, mode="overwrite"),
    "merge": lambda table, rows, column: merge_rows(table, input=rows, on=[column]),
}


@pytest.mark.parametrize(("field", "values", "path"), ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("operation", WRITES)
def test_a_null_where_none_is_allowed_is_refused(
    tmp_path: Path, operation: str, field: pa.Field, values: list[Any], path: str
) -> None:
    table, rows = TableHandle(str(tmp_path / "t.lance")), _stream(tmp_path, field, values)
    if operation != "create":
        lance.write_dataset(pa.schema([field]).empty_table(), table.location)
    with pytest.raises(TableSchemaValidation, match=rf"^the rows contain a null in {path}, which allows none$"):
        WRITES[operation](table, rows, field.name)
    if operation == "create":
        assert not Path(table.location, "data").exists()
    else:
        assert lance.dataset(table.location).version == 1


@pytest.mark.parametrize("operation", ["insert", "merge"])
def test_the_table_may_allow_less_than_the_rows(tmp_path: Path, operation: str) -> None:
    table = TableHandle(str(tmp_path / "t.lance"))
    lance.write_dataset(pa.schema([pa.field("s", pa.struct([ID]))]).empty_table(), table.location)
    rows = _stream(tmp_path, pa.field("s", pa.struct([pa.field("id", pa.int64())])), [{"id": 1}, {"id": None}])
    with pytest.raises(TableSchemaValidation, match=r"a null in s\.id,"):
        WRITES[operation](table, rows, "s")


def test_rows_without_such_nulls_are_written(tmp_path: Path) -> None:
    field = pa.field("s", pa.struct([ID, pa.field("l", pa.list_(ITEM))]))
    rows = _stream(tmp_path, field, [None, {"id": 1, "l": None}, {"id": 2, "l": [1.0]}])
    assert create_table(TableHandle(str(tmp_path / "t.lance")), input=rows)["num_inserted_rows"] == 3


def test_maps_and_columns_that_are_missing() -> None:
    kind = pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))
    schema = pa.schema([pa.field("m", kind), ID])
    assert find_null(pa.record_batch([pa.array([None, [("a", 1)]], kind)], names=["m"]), schema) is None
    assert find_null(pa.record_batch([pa.array([None, [("a", None)]], kind)], names=["m"]), schema) == "m.value"
