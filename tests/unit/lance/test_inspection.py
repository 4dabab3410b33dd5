"""What the inspection of a broken table says to its reader."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from federator.lance.inspection import inspect_location


@pytest.mark.parametrize("torn", [False, True])
def test_a_message_about_a_broken_table_has_neither_paths_of_the_process_nor_source_code(tmp_path: Path, torn: bool) -> None:
    location = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"id": [1, 2]}), location)
    for manifest in (location / "_versions").iterdir():
        if torn:
            manifest.write_bytes(b"torn")
        else:
            manifest.unlink()
    result = inspect_location(str(location), {})
    message = str(result.message)
    assert result.state == "corrupt"
    assert "proc/self" not in message
    assert ".rs:" not in message
    assert ("sufficient data" if torn else "no manifest") in message
