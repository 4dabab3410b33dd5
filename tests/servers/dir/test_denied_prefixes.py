"""A directory in a bucket whose credentials may not read some of its prefixes: S3 of moto behind the proxy that checks policies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lance
import pyarrow as pa
import pytest

from federator.connector import PermissionDenied, SourceSpec
from federator.model import Coverage, CoverageState, Record
from federator.registry import open_catalog
from tests.fixtures.enforcing_s3 import EnforcingS3, enforcing_s3

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def proxy(glue_url: str) -> Iterator[EnforcingS3]:
    with enforcing_s3(glue_url) as running:
        yield running


def read_all(proxy: EnforcingS3, root: str, denied: list[dict[str, Any]]) -> tuple[list[Record], Coverage]:
    """Read a directory with credentials that may read all of its bucket, except what is denied."""
    bucket = f"arn:aws:s3:::{root.removeprefix('s3://').partition('/')[0]}"
    allowed = [
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"{bucket}/*"},
        {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": bucket},
    ]
    session, key_id = proxy.mint("crawler", {"Version": "2012-10-17", "Statement": [*denied, *allowed]})
    storage = {
        "endpoint": proxy.url, "allow_http": "true", "region": "us-east-1", "access_key_id": key_id,
        "secret_access_key": session.secret, "session_token": session.token,
    }  # fmt: skip
    catalog = open_catalog(
        SourceSpec("lake", "dir", {"root": root, **{f"storage.{key}": text for key, text in storage.items()}})
    )
    try:
        (shard,) = catalog.plan_shards()
        *records, coverage = catalog.read_shard(shard)
        with pytest.raises(PermissionDenied):
            catalog.describe_table(("secret",))
        assert catalog.describe_table(("orders",)).location == f"{root}/orders.lance"
    finally:
        catalog.close()
    assert isinstance(coverage, Coverage)
    return [record for record in records if not isinstance(record, Coverage)], coverage


def test_a_denied_table_is_not_described_and_the_others_are(proxy: EnforcingS3) -> None:
    root = f"s3://{proxy.new_bucket()}/lake"
    for name in ("orders", "secret", "payments"):
        lance.write_dataset(ROWS, f"{root}/{name}.lance", storage_options=proxy.owner_options)
    denied = {"Effect": "Deny", "Action": "s3:*", "Resource": f"arn:aws:s3:::{root.removeprefix('s3://')}/secret.lance/*"}
    records, coverage = read_all(proxy, root, [denied])
    tables = {record.path: record for record in records if record.path}
    assert {path: record.location for path, record in tables.items()} == {
        ("orders",): f"{root}/orders.lance", ("payments",): f"{root}/payments.lance", ("secret",): None,
    }  # fmt: skip
    assert "secret.lance" in str(tables["secret",].problem)
    assert coverage.presence.state is CoverageState.COMPLETE
    assert coverage.detail.state is not CoverageState.COMPLETE
