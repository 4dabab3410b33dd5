"""CSV files of a report: each text is read back unchanged, except formulas, which are escaped."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from federator.pipeline.reports.files import write_details

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", '=HYPERLINK("http://x","y")', "＝1", "=1,\n=2")
HARMLESS = ("orders", "a=1", "'=1", "", " =1", '"quoted", and more', "é😀", "10")


@pytest.fixture
def staged(tmp_path: Path) -> Path:
    texts = [*FORMULAS, *HARMLESS, None]
    (tmp_path / "staged").mkdir()
    table = pa.table({"name": texts, "rows": list(range(-3, len(texts) - 3)), "seen_at": [1.5] * len(texts)})
    pq.write_table(table, tmp_path / "staged" / "part-0.parquet")
    return tmp_path / "staged"


def test_formulas_of_spreadsheets_are_escaped(staged: Path, tmp_path: Path) -> None:
    made, kept = write_details(pq.read_table(staged).to_reader(), tmp_path, "inventory", ("csv", "parquet"))
    with made.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == [*(f"'{text}" for text in FORMULAS), *HARMLESS, ""]
    # A number below zero is a number.
    assert [row["rows"] for row in rows][:4] == ["-3", "-2", "-1", "0"]
    assert {row["seen_at"] for row in rows} == {"1970-01-01 00:00:01.500000Z"}
    assert pq.read_table(kept)["name"].to_pylist() == [*FORMULAS, *HARMLESS, None]


def test_no_text_of_any_column_can_steer_a_terminal_or_a_spreadsheet(tmp_path: Path) -> None:
    texts = ["a\x1b[31mred", "\x00=1", "=1\x07", "\x7f", "\x9b31m", "\u202eabc", "two\nlines", "-1", None]
    written = ["a\\x1b[31mred", "\\x00=1", "'=1\\x07", "\\x7f", "\\x9b31m", "\\u202eabc", "two\nlines", "'-1", ""]
    columns = dict.fromkeys(("path", "owner", "location", "problem"), texts)
    (tmp_path / "staged").mkdir()
    table = pa.table({**columns, "rows": [-1] * len(texts), "share": [-0.5] * len(texts)})
    pq.write_table(table, tmp_path / "staged" / "part-0.parquet")
    made, kept = write_details(pq.read_table(tmp_path / "staged").to_reader(), tmp_path, "inventory", ("csv", "parquet"))
    with made.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for name in columns:
        assert [row[name] for row in rows] == written, name
    assert {(row["rows"], row["share"]) for row in rows} == {("-1", "-0.5")}
    assert pq.read_table(kept)["owner"].to_pylist() == texts
