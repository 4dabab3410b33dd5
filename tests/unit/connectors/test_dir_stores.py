"""Storage of a directory source: the file system of each URI scheme, and missing settings. Needs no server."""

from __future__ import annotations

from pathlib import Path

import pytest

from federator.connector import ConfigError, InvalidInput, Unsupported
from federator.connector.storage import open_storage
from federator_connectors._dir.storage import Directory

ACCOUNT = {"account_name": "acc", "account_key": "a2V5"}


@pytest.mark.parametrize(
    ("root", "storage", "location"),
    [
        ("gs://bucket/a b", {"google_skip_signature": "true"}, "gs://bucket/a b/x.lance"),
        ("gs://bucket", {"base_url": "http://127.0.0.1:9", "skip_signature": "true"}, "gs://bucket/x.lance"),
        ("az://container/dir/", ACCOUNT, "az://container/dir/x.lance"),
        ("az://container", {f"azure_storage_{key}": value for key, value in ACCOUNT.items()}, "az://container/x.lance"),
        ("abfss://container@acc.dfs.core.windows.net/dir", {"sas_token": "sig=x"}, "abfss://container@acc.dfs.core.windows.net/dir/x.lance"),
        ("abfss://container@acc.dfs.core.windows.net", {}, "abfss://container@acc.dfs.core.windows.net/x.lance"),
        ("S3A://bucket/dir", {"region": "eu-west-1", "access_key_id": "a", "secret_access_key": "b"}, "s3a://bucket/dir/x.lance"),
    ],
)  # fmt: skip
def test_a_location_is_spelled_as_its_root(root: str, storage: dict[str, str], location: str) -> None:
    assert Directory(root, storage).location_of("x.lance") == location


def test_the_container_is_the_first_part_of_a_path_within_azure() -> None:
    assert open_storage("abfss://c@acc.dfs.core.windows.net/a/b", {}).path == "c/a/b"
    assert open_storage("az://c/a/b", ACCOUNT).path == "c/a/b"


@pytest.mark.parametrize(
    ("root", "storage", "message", "hint"),
    [
        ("az://container/dir", {}, "the storage account is missing", "storage.account_name"),
        (
            "gs://bucket", {"google_service_account": "/key.json"}, "does not support storage.service_account",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ),
        (
            "gs://bucket", {"service_account_key": "{}"}, "does not support storage.service_account_key",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_is_a_mistake_in_the_configuration(root: str, storage: dict[str, str], message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_storage(root, storage)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_hdfs_names_the_libraries_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.fs

    def refuse(*args: object, **keywords: object) -> None:
        raise OSError("Unable to load libjvm\ndlopen(/usr/lib/jvm) failed")

    monkeypatch.setattr(pyarrow.fs, "HadoopFileSystem", refuse)
    with pytest.raises(ConfigError, match="libhdfs and Java") as caught:
        open_storage("hdfs://name-node:8020/lake", {})
    assert "\ndlopen" not in caught.value.message


def test_a_store_that_pyarrow_was_built_without_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.fs

    monkeypatch.delattr(pyarrow.fs, "GcsFileSystem")
    with pytest.raises(ConfigError, match="no GcsFileSystem"):
        open_storage("gs://bucket", {})


@pytest.mark.parametrize(
    ("root", "error"),
    [("ftp://host/x", Unsupported), ("s3://", InvalidInput), ("gs://", InvalidInput), ("hdfs:///x", InvalidInput)],
)
def test_what_is_no_directory_is_refused(root: str, error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error):
        open_storage(root, {})
