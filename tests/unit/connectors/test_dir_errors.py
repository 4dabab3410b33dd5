"""Mapping of storage errors: exceptions of pyarrow for a local file system and for S3."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from federator.connector import (
    CatalogError,
    Internal,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    Throttled,
    Unauthenticated,
)
from federator.connector.errors import split_hint
from federator.connector.storage import translate_storage_errors
from federator.model import Coverage, TableRecord
from federator_connectors._dir.catalog import DirCatalog
from federator_connectors._dir.settings import DirSettings
from federator_connectors._dir.storage import Directory

AWS = "When listing objects under key 'p/' in bucket 'b': AWS Error {} during ListObjectsV2 operation: text"


@pytest.mark.parametrize(
    ("native", "expected"),
    [
        (PermissionError(errno.EACCES, "denied"), PermissionDenied),
        (FileNotFoundError(errno.ENOENT, "gone"), ServiceUnavailable),
        (NotADirectoryError(errno.ENOTDIR, "a file"), ServiceUnavailable),
        (OSError(errno.EIO, "disk"), ServiceUnavailable),
        (OSError(errno.ESTALE, "stale handle"), ServiceUnavailable),
        (OSError(errno.ENAMETOOLONG, "long"), InvalidInput),
        (OSError(errno.ENOSPC, "full"), Internal),
        (OSError(AWS.format("ACCESS_DENIED")), PermissionDenied),
        (OSError(AWS.format("UNKNOWN (HTTP status 403)")), PermissionDenied),
        (OSError(AWS.format("INVALID_ACCESS_KEY_ID")), Unauthenticated),
        (OSError(AWS.format("SIGNATURE_DOES_NOT_MATCH")), Unauthenticated),
        (OSError(AWS.format("SLOW_DOWN")), Throttled),
        (OSError(AWS.format("NO_SUCH_BUCKET")), ServiceUnavailable),
        (OSError(AWS.format("NETWORK_CONNECTION")), ServiceUnavailable),
        (OSError("something else"), Internal),
        (ValueError("embedded null byte"), InvalidInput),
    ],
    ids=str,
)
def test_each_native_error_has_its_code(native: Exception, expected: type[CatalogError]) -> None:
    with pytest.raises(expected) as caught, translate_storage_errors("s3://b/p"):
        raise native
    assert type(caught.value) is expected
    assert caught.value.__cause__ is native
    assert "s3://b/p" in caught.value.message


def test_the_words_of_the_aws_client_are_not_shown() -> None:
    text = "curlCode: 7, Could not connect to server; Details: Failed to connect to 127.0.0.1:9 after 0 ms"
    native = OSError(AWS.format("NETWORK_CONNECTION").removesuffix("text") + text)
    with pytest.raises(ServiceUnavailable) as caught, translate_storage_errors("s3://b/p"):
        raise native
    assert caught.value.message == "s3://b/p: the store cannot be reached (Failed to connect to 127.0.0.1:9 after 0 ms)"
    assert caught.value.hint == "check the endpoint and the state of the store"


def test_a_file_instead_of_the_directory_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ServiceUnavailable):
        Directory(str(tmp_path / "file"), {}).list_subdirectories()


def test_no_marker_is_written_or_removed_through_a_link(tmp_path: Path) -> None:
    for source in ("theirs", "mine"):
        (tmp_path / source).mkdir()
    theirs, mine = (DirCatalog(source, DirSettings(root=str(tmp_path / source))) for source in ("theirs", "mine"))
    for name in ("shown", "hidden"):
        record = theirs.declare_table(TableRecord("theirs", (name,), theirs.default_location((name,))))
        (tmp_path / "mine" / f"{name}.lance").symlink_to(tmp_path / "theirs" / f"{name}.lance")
    theirs.deregister_table(record)
    with pytest.raises(PermissionDenied, match=r"shown\.lance is a symbolic link"):
        mine.deregister_table(mine.describe_table(("shown",)))
    with pytest.raises(PermissionDenied, match=r"hidden\.lance is a symbolic link"):
        mine.declare_table(TableRecord("mine", ("hidden",), mine.default_location(("hidden",))))
    own = mine.declare_table(TableRecord("mine", ("own",), mine.default_location(("own",))))
    marker = ".lance-deregistered"
    (tmp_path / "mine" / "own.lance" / marker).symlink_to(tmp_path / "theirs" / "shown.lance" / marker)
    with pytest.raises(PermissionDenied, match="is a symbolic link"):
        mine.deregister_table(own)
    assert (theirs.list_tables(()), mine.list_tables(())) == (["shown"], ["own", "shown"])


def test_a_directory_that_exists_is_not_created_again(tmp_path: Path) -> None:
    directory = Directory(str(tmp_path), {})
    assert directory.create("x.lance")
    assert not directory.create("x.lance")


def test_the_message_of_a_source_that_cannot_be_read_has_the_hint(tmp_path: Path) -> None:
    catalog = DirCatalog("mine", DirSettings(root=str(tmp_path / "absent")))
    (coverage,) = [item for shard in catalog.plan_shards() for item in catalog.read_shard(shard)]
    assert isinstance(coverage, Coverage)
    assert split_hint(coverage.presence.reason) == (f"{tmp_path}/absent: the directory does not exist", "create or mount it")
