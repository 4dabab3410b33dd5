"""Unused locations: only Lance's own marker files are allowed there, and the check has a deadline."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from federator.connector.storage_use import is_unused
from tests.fixtures.glue import client_of

pytestmark = pytest.mark.timeout(60)


def test_a_directory_with_anything_but_markers_is_in_use(tmp_path: Path) -> None:
    location = tmp_path / "t.lance"
    assert is_unused(str(location), {})
    location.mkdir()
    assert is_unused(location.as_uri(), {})
    (location / ".lance-reserved").touch()
    (location / ".lance-deregistered").touch()
    assert is_unused(f"file:{location}", {})
    (location / "_versions").mkdir()
    assert not is_unused(str(location), {})


def test_a_file_or_an_unreachable_location_counts_as_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not is_unused(str(tmp_path / "file"), {})
    assert not is_unused(str(tmp_path / "file" / "t.lance"), {})
    assert not is_unused("nowhere://bucket/t.lance", {})


def test_an_object_store_is_listed_with_the_sources_own_options(glue_url: str, s3_storage_options: dict[str, str]) -> None:
    used, unused = "s3://lance-data/use/used.lance", "s3a://lance-data/use/unused.lance"
    lance.write_dataset(pa.table({"a": [1]}), used, storage_options=s3_storage_options)
    client_of(glue_url, "s3").put_object(Bucket="lance-data", Key="use/unused.lance/.lance-reserved")
    assert not is_unused(used, s3_storage_options)
    assert is_unused(unused, s3_storage_options)
    # Below the prefix, and not only beginning like it.
    assert is_unused("s3://lance-data/use/used", s3_storage_options)
    assert not is_unused("s3://none-such/t.lance", s3_storage_options)


def test_a_store_that_does_not_answer_in_time_may_hold_a_table(s3_storage_options: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        threads = threading.enumerate()
        assert not is_unused("s3://lance-data/t.lance", {**s3_storage_options, "aws_endpoint": endpoint}, seconds=0.3)
        # One that is inside Lance's native code when Python ends aborts the process.
        assert threading.enumerate() == threads
