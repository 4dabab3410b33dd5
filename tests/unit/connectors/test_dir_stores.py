"""Storage of a directory source: the file system of each URI scheme, and missing settings. Needs no server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from federator.connector import (
    CatalogError,
    ConfigError,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    Throttled,
    Unauthenticated,
    Unsupported,
)
from federator.connector.object_store import translate_error
from federator.connector.storage import open_storage
from federator_connectors._dir.storage import Directory
from federator_connectors.dir import CONNECTOR

ACCOUNT = {"account_name": "acc", "account_key": "a2V5"}


@pytest.mark.parametrize(
    ("root", "storage", "location"),
    [
        ("gs://bucket/a b", {"google_skip_signature": "true"}, "gs://bucket/a b/x.lance"),
        ("gs://bucket", {"base_url": "http://127.0.0.1:9", "skip_signature": "true", "region": "eu"}, "gs://bucket/x.lance"),
        ("az://container/dir/", ACCOUNT, "az://container/dir/x.lance"),
        ("az://container", {f"azure_storage_{key}": value for key, value in ACCOUNT.items()}, "az://container/x.lance"),
        ("abfss://container@acc.dfs.core.windows.net/dir", {"sas_token": "sig=x"}, "abfss://container@acc.dfs.core.windows.net/dir/x.lance"),
        ("abfss://container@acc.dfs.core.windows.net", {}, "abfss://container@acc.dfs.core.windows.net/x.lance"),
        ("S3A://bucket/dir", {"region": "eu-west-1", "access_key_id": "a", "secret_access_key": "b"}, "s3a://bucket/dir/x.lance"),
    ],
)  # fmt: skip
def test_a_location_is_spelled_as_its_root(root: str, storage: dict[str, str], location: str) -> None:
    assert Directory(root, storage).location_of("x.lance") == location


def test_sources_with_different_spellings_of_one_root_share_their_locks(tmp_path: Path) -> None:
    def server_of(root: str) -> str | None:
        return CONNECTOR.capabilities_for(CONNECTOR.parse_settings({"root": root})).declarations_race_in

    assert {server_of(root) for root in ("s3://bucket/dir", "S3://bucket/dir/", "s3a://bucket/dir")} == {"s3://bucket/dir"}
    assert server_of("s3://bucket/Dir") == "s3://bucket/Dir", "keys have upper case"
    assert server_of(str(tmp_path)) is None, "a file system refuses the second"


def test_the_container_is_the_first_part_of_a_path_within_azure() -> None:
    assert open_storage("abfss://c@acc.dfs.core.windows.net/a/b", {}).path == "c/a/b"
    assert open_storage("az://c/a/b", ACCOUNT).path == "c/a/b"


@pytest.mark.parametrize(
    ("root", "storage", "message", "hint"),
    [
        ("az://container/dir", {}, "the storage account is missing", "storage.account_name"),
        ("gs://bucket", {"google_service_account": "/no/key.json"}, "Unable to open service account file", "storage options"),
        ("gs://bucket", {"service_account_key": "{}"}, "missing field `private_key`", "storage options"),
        ("gs://bucket", {"endpoint": "http://127.0.0.1:9"}, "no storage.endpoint", "storage.base_url"),
        ("az://container", {"account_name": "acc", "account_key": "no base64"}, "Invalid Access Key", "storage options"),
        ("abfss://c@acc.dfs.core.example", {"sas_token": "sig=x"}, "did not match any known pattern", "storage options"),
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


def test_options_of_the_client_are_no_options_of_the_store() -> None:
    client = {
        "allow_http": "true", "allow_invalid_certificates": "false", "connect_timeout": "1s", "default_content_type": "text/plain",
        "http1_only": "false", "http2_keep_alive_interval": "5s", "http2_keep_alive_timeout": "5s",
        "http2_keep_alive_while_idle": "true", "http2_max_frame_size": "65536", "http2_only": "false", "pool_idle_timeout": "5s",
        "pool_max_idle_per_host": "3", "proxy_excludes": "example.com", "proxy_url": "http://127.0.0.1:9",
        "randomize_addresses": "true", "read_timeout": "5s", "timeout": "5s", "user_agent": "tests",
    }  # fmt: skip
    for key, text in client.items():
        assert open_storage("az://c", {**ACCOUNT, f"azure_{key}" if key == "timeout" else key: text}).path == "c"
    assert open_storage("gs://bucket", client | {"skip_signature": "true"}).path == "bucket"


@pytest.mark.parametrize(("root", "extra"), [("gs://bucket", "gcs"), ("az://container", "azure")])
def test_the_extra_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, root: str, extra: str) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(ConfigError, match="obstore, which is not installed") as caught:
        open_storage(root, ACCOUNT)
    assert caught.value.hint == f"pip install 'lance-federator[{extra}]'"


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("status code: 401 Unauthorized: <Code>X</Code>", Unauthenticated, "HTTP 401 X"),
        ("status code: 403 Forbidden: <Code>AuthenticationFailed</Code>", Unauthenticated, "HTTP 403 AuthenticationFailed"),
        ("status code: 403 Forbidden: ", PermissionDenied, "HTTP 403"),
        ("status code: 429 Too Many Requests: ", Throttled, "HTTP 429"),
        ("status code: 503 Service Unavailable: <Code>ServerBusy</Code>", Throttled, "HTTP 503 ServerBusy"),
        ("status code: 500 Internal Server Error: ", ServiceUnavailable, "HTTP 500"),
        ("Error performing token request: status code: 400 Bad Request: ", Unauthenticated, "HTTP 400"),
    ],
)
def test_a_status_of_a_store_is_an_error_of_the_catalog(text: str, kind: type[CatalogError], message: str) -> None:
    error = translate_error("gs://lake/w", RuntimeError(text.replace("status code", "Server returned non-2xx status code")))
    assert (type(error), error.message) == (kind, f"gs://lake/w: the store responded with {message}")


@pytest.mark.parametrize(
    ("root", "error"),
    [("ftp://host/x", Unsupported), ("s3://", InvalidInput), ("gs://", InvalidInput), ("hdfs:///x", InvalidInput)],
)
def test_what_is_no_directory_is_refused(root: str, error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error):
        open_storage(root, {})
