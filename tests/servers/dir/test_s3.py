"""The directory catalog on S3 (moto's server over HTTP), with pylance."""

from __future__ import annotations

from typing import Any

import lance
import lance_namespace as ln
import pyarrow as pa
import pytest

from federator.model import canonical_location
from federator.testing.contract import unique_name

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def facade(s3_storage_options: dict[str, str]) -> Any:
    storage = {f"dir.storage.{key}": value for key, value in s3_storage_options.items()}
    return ln.connect(
        "federator_connectors.dir.DirNamespace", {"dir.root": f"s3://lance-data/{unique_name('pre fix')}", **storage}
    )


@pytest.mark.parametrize("name", ["orders", "sp ace", "em😀ji", "a$b", "a.b", "a%20b", "a#b", "a?b", "a\\b"])
def test_pylance_writes_and_reads_any_name(facade: Any, s3_storage_options: dict[str, str], name: str) -> None:
    lance.write_dataset(ROWS, namespace_client=facade, table_id=[name])
    assert facade.list_tables(ln.ListTablesRequest(id=[])).tables == [name]
    assert lance.dataset(namespace_client=facade, table_id=[name]).count_rows() == 3
    described = facade.describe_table(ln.DescribeTableRequest(id=[name], with_table_uri=True, check_declared=True))
    assert lance.dataset(described.table_uri, storage_options=s3_storage_options).count_rows() == 3
    assert described.storage_options == s3_storage_options
    assert described.is_only_declared is False
    assert canonical_location(described.location) == described.location


def test_a_new_prefix_takes_its_first_table_and_until_then_proves_nothing(facade: Any) -> None:
    with pytest.raises(ln.ServiceUnavailableError, match="a prefix without objects does not exist"):
        facade.list_tables(ln.ListTablesRequest(id=[]))
    with pytest.raises(ln.TableNotFoundError):
        facade.describe_table(ln.DescribeTableRequest(id=["t"]))
    facade.declare_table(ln.DeclareTableRequest(id=["t"]))
    assert facade.describe_table(ln.DescribeTableRequest(id=["t"], check_declared=True)).is_only_declared is True
    facade.deregister_table(ln.DeregisterTableRequest(id=["t"]))
    assert facade.list_tables(ln.ListTablesRequest(id=[])).tables == []
