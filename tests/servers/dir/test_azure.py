"""The directory catalog in Azure's blobs: Azurite, Microsoft's own emulator, with pylance."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import lance
import lance_namespace as ln
import pyarrow as pa
import pytest

from federator.connector import CatalogError, PermissionDenied, ServiceUnavailable, Unauthenticated
from federator.connector.storage import open_storage
from federator.pipeline.directory_lister import list_directory
from federator.testing.contract import unique_name
from federator_connectors._dir.storage import Directory
from tests.fixtures.emulators import ACCOUNT, ACCOUNT_KEY, BUCKET, AzureEmulator
from tests.fixtures.postgres import free_port

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture(params=["az", "abfss"])
def root(request: pytest.FixtureRequest) -> str:
    authority = BUCKET if request.param == "az" else f"{BUCKET}@{ACCOUNT}.dfs.core.windows.net"
    return f"{request.param}://{authority}/{unique_name('pre fix')}"


@pytest.fixture
def options(azure_emulator: AzureEmulator) -> dict[str, str]:
    return {**azure_emulator.options, "account_key": ACCOUNT_KEY}


@pytest.mark.parametrize("name", ["orders", "sp ace", "em😀ji", "a%20b", "a#b", "a?b"])
def test_pylance_writes_and_reads_any_name(options: dict[str, str], name: str) -> None:
    root = f"az://{BUCKET}/{unique_name('pre fix')}"
    storage = {f"dir.storage.{key}": value for key, value in options.items()}
    facade: Any = ln.connect("federator_connectors.dir.DirNamespace", {"dir.root": root, **storage})
    lance.write_dataset(ROWS, namespace_client=facade, table_id=[name])
    assert facade.list_tables(ln.ListTablesRequest(id=[])).tables == [name]
    described = facade.describe_table(ln.DescribeTableRequest(id=[name], with_table_uri=True, check_declared=True))
    assert lance.dataset(described.table_uri, storage_options=options).count_rows() == 3
    assert described.is_only_declared is False
    facade.deregister_table(ln.DeregisterTableRequest(id=[name]))
    assert facade.list_tables(ln.ListTablesRequest(id=[])).tables == []
    assert lance.dataset(described.table_uri, storage_options=options).count_rows() == 3


def test_a_new_prefix_takes_its_first_table_and_until_then_proves_nothing(root: str, options: dict[str, str]) -> None:
    directory = Directory(root, options)
    with pytest.raises(ServiceUnavailable, match="does not exist"):
        directory.list_subdirectories()
    directory.create_marker("t.lance", ".lance-reserved")
    assert directory.list_subdirectories().names == ["t.lance"]
    assert directory.filter_containing(["t.lance", "other.lance"], ".lance-reserved") == {"t.lance"}
    assert directory.filter_existing(["other.lance", "t.lance"]) == ["t.lance"]
    assert list_directory(root, options, []).directories == ["t.lance"]
    assert list_directory(root, options, ["gone"]).state == "gone"


def test_a_signature_opens_what_it_permits(azure_emulator: AzureEmulator, root: str, options: dict[str, str]) -> None:
    Directory(root, options).create_marker("t.lance", ".lance-reserved")
    signed = {**azure_emulator.options, "sas_token": azure_emulator.sas_token("rl")}
    assert Directory(root, signed).list_subdirectories().names == ["t.lance"]
    with pytest.raises(PermissionDenied, match="HTTP 403"):
        Directory(root, signed).create_marker("u.lance", ".lance-reserved")


@pytest.mark.parametrize("credential", ["another key", "an expired signature", "one that does not list", "none"])
def test_a_refused_listing_is_denied_and_never_empty(azure_emulator: AzureEmulator, root: str, credential: str) -> None:
    credentials = {
        "another key": {"account_key": f"AAAA{ACCOUNT_KEY[4:]}"},
        "an expired signature": {"sas_token": azure_emulator.sas_token("rl", lifetime=timedelta(minutes=-5))},
        "one that does not list": {"sas_token": azure_emulator.sas_token("r")},
        "none": {"skip_signature": "true"},
    }
    storage = azure_emulator.options | credentials[credential]
    with pytest.raises((PermissionDenied, Unauthenticated), match="HTTP 403"):
        Directory(root, storage).list_subdirectories()
    assert list_directory(root, storage, []).state == "denied"


def test_what_cannot_be_reached_is_no_absence(options: dict[str, str]) -> None:
    with pytest.raises(ServiceUnavailable, match="HTTP 404 ContainerNotFound"):
        Directory("az://no-such-container/lake", options).list_subdirectories()
    nobody = options | {"azure_endpoint": f"http://127.0.0.1:{free_port()}/{ACCOUNT}"}
    with pytest.raises(CatalogError, match="cannot be reached") as caught:
        Directory(f"az://{BUCKET}/lake", nobody).list_subdirectories()
    assert isinstance(caught.value, ServiceUnavailable)


def test_an_emulator_needs_no_account(azure_emulator: AzureEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    # The variable of Azure's own clients for another port than that of the documentation.
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", azure_emulator.url)
    directory = open_storage(f"az://{BUCKET}", {"use_emulator": "true"})
    assert directory.filesystem.get_file_info(BUCKET).type.name == "Directory"


def test_a_directory_of_a_hierarchical_namespace_is_one(azure_emulator: AzureEmulator, options: dict[str, str]) -> None:
    # There, and where Hadoop wrote, a directory has an object of its own.
    prefix = unique_name("made")
    for name in (f"{prefix}/full.lance", f"{prefix}/empty.lance"):
        azure_emulator.upload(name, hdi_isfolder="true")
    azure_emulator.upload(f"{prefix}/full.lance/x")
    azure_emulator.upload(f"{prefix}/file.lance")
    directory = Directory(f"az://{BUCKET}/{prefix}", options)
    assert directory.filter_existing(["full.lance", "empty.lance", "file.lance"]) == ["full.lance", "empty.lance"]
    assert directory.list_subdirectories().names == ["full.lance"]
