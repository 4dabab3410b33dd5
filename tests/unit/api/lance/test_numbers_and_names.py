"""Numbers that Lance cannot hold, and names that it takes as paths, are refused before they reach it: they ended the process."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pytest

from federator.testing.contract import unique_name
from tests.unit.api.lance.conftest import Service

VECTORS = pa.FixedSizeListArray.from_arrays(pa.array([float(n) for n in range(8)], pa.float32()), 2)
NEAREST = {"vector": {"single_vector": [1.0, 2.0]}, "k": 2}
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("count_rows", {"version": 2**64}), ("query", {"k": 1, "version": 2**64}), ("version/describe", {"version": 2**63}),
    ("count_rows", {"version": -1}), ("query", {"k": 1, "offset": 2**63}), ("query", {"k": 2**40}),
    ("query", {**NEAREST, "refine_factor": 2**40}), ("query", {**NEAREST, "nprobes": 2**33}), ("query", {**NEAREST, "ef": 2**33}),
    ("query", {"k": 2, "vector": {"multi_vector": [[]]}}), ("query", {"k": 2, "vector": {"multi_vector": [[1.0, 2.0], []]}}),
    ("restore", {"version": 2**64}), ("tags/create", {"tag": "t", "version": 2**64}),
    ("branches/create", {"name": "b", "from_version": 2**64}),
    ("create_index", {"column": "text", "index_type": "FTS", "base_tokenizer": "lindera/../../../x"}),
    ("create_index", {"column": "text", "index_type": "FTS", "base_tokenizer": "jieba/default"}),
]  # fmt: skip


@pytest.fixture(scope="module")
def table(service: Service) -> str:
    name = unique_name("numbers")
    lance.write_dataset(pa.table({"text": ["a", "b", "c", "d"], "vector": VECTORS}), str(service.root / f"{name}.lance"))
    service.crawl("lake")
    return f"/v1/table/lake%24{name}"


@pytest.mark.parametrize(("operation", "body"), REFUSED)
def test_what_lance_cannot_hold_is_refused(service: Service, table: str, operation: str, body: dict[str, Any]) -> None:
    response = service.post(f"{table}/{operation}", body)
    assert response.status_code == 400, response.text
    assert "ended" not in response.json()["error"]
    assert ".local" not in response.text
    assert service.post(f"{table}/count_rows", {}).json() == 4


def test_usual_numbers_and_names_are_taken(service: Service, table: str) -> None:
    assert service.post(f"{table}/query", {**NEAREST, "refine_factor": 2, "nprobes": 1, "offset": 1}).status_code == 200
    built = service.post(f"{table}/create_index", {"column": "text", "index_type": "FTS", "base_tokenizer": "whitespace"})
    assert built.status_code == 200, built.text
