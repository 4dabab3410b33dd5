"""A report's CSV: every text comes back as it was, but for what a spreadsheet would compute."""

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


def test_what_a_spreadsheet_would_compute_is_a_text(staged: Path, tmp_path: Path) -> None:
    made, kept = write_details(staged, tmp_path, "inventory", ("csv", "parquet"))
    with made.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == [*(f"'{text}" for text in FORMULAS), *HARMLESS, ""]
    # A number below zero is a number.
    assert [row["rows"] for row in rows][:4] == ["-3", "-2", "-1", "0"]
    assert {row["seen_at"] for row in rows} == {"1970-01-01 00:00:01.500000Z"}
    assert pq.read_table(kept)["name"].to_pylist() == [*FORMULAS, *HARMLESS, None]
