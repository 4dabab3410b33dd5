"""The directory catalog in Google Cloud Storage: fake-gcs-server, with tables that pylance wrote."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from federator.connector import ServiceUnavailable
from federator.pipeline.directory_lister import list_directory
from federator.testing.contract import unique_name
from federator_connectors._dir.storage import Directory
from tests.fixtures.emulators import BUCKET, GcsEmulator
from tests.fixtures.postgres import free_port

#: of a page of the server
PAGE = 1000


@pytest.mark.parametrize("scheme", ["gs", "gcs"])
def test_tables_of_pylance_are_found_and_opened(gcs_emulator: GcsEmulator, tmp_path: Path, scheme: str) -> None:
    prefix = unique_name("pre fix")
    names = ["orders.lance", "sp ace.lance", "100%.lance", "ä.lance"]
    for name in names:
        lance.write_dataset(pa.table({"id": [1, 2, 3]}), str(tmp_path / name))
    gcs_emulator.upload_directory(tmp_path, prefix)
    gcs_emulator.upload(f"{prefix}/README")
    gcs_emulator.upload(f"{prefix}/orders.lance/.lance-deregistered")
    directory = Directory(f"{scheme}://{BUCKET}/{prefix}", gcs_emulator.options)
    assert sorted(directory.list_subdirectories().names) == sorted(names)
    assert directory.filter_containing(names, ".lance-deregistered") == {"orders.lance"}
    assert directory.filter_existing([*names, "README", "none.lance"]) == names
    location = directory.location_of("sp ace.lance").replace("gcs://", "gs://").replace(" ", "%20")
    assert lance.dataset(location, storage_options=gcs_emulator.options).count_rows() == 3
    root = f"gs://{BUCKET}/{prefix}"
    assert sorted(list_directory(root, gcs_emulator.options, []).directories) == sorted(names)
    assert list_directory(root, gcs_emulator.options, ["orders.lance"]).state == "table"


def test_no_page_is_lost(gcs_emulator: GcsEmulator) -> None:
    prefix = unique_name("many")
    names = [f"t{number:04}.lance" for number in range(PAGE + 1)]
    for name in names:
        gcs_emulator.upload(f"{prefix}/{name}/x")
    assert sorted(Directory(f"gs://{BUCKET}/{prefix}", gcs_emulator.options).list_subdirectories().names) == names


def test_an_object_that_stands_for_a_directory_is_none_of_its_entries(gcs_emulator: GcsEmulator) -> None:
    prefix = unique_name("made")
    for name in (f"{prefix}/", f"{prefix}/t.lance/", f"{prefix}/t.lance/x"):
        gcs_emulator.upload(name)
    assert Directory(f"gs://{BUCKET}/{prefix}", gcs_emulator.options).list_subdirectories().names == ["t.lance"]


def test_what_is_missing_or_cannot_be_reached_is_no_absence(gcs_emulator: GcsEmulator) -> None:
    with pytest.raises(ServiceUnavailable, match="does not exist"):
        Directory(f"gs://{BUCKET}/none", gcs_emulator.options).list_subdirectories()
    with pytest.raises(ServiceUnavailable, match="HTTP"):
        Directory("gs://no-such-bucket/lake", gcs_emulator.options).list_subdirectories()
    nobody = {"base_url": f"http://127.0.0.1:{free_port()}", "skip_signature": "true", "allow_http": "true"}
    with pytest.raises(ServiceUnavailable, match="cannot be reached"):
        Directory(f"gs://{BUCKET}/lake", nobody).list_subdirectories()
