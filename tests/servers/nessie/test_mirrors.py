"""Nessie as the origin and as the target of a mirror, by the product's commands."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path as FilePath

import lance
import pyarrow as pa
import pytest

from federator.model import Path, path_key
from federator.store.coverage import read_coverage
from federator.store.records import published_revision
from tests.fixtures.nessie import NessieServer
from tests.fixtures.nessie_server import BUCKET
from tests.fixtures.product import MEMORY, Product

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(600)]


def test_tables_of_nessie_are_crawled_and_declared_elsewhere(
    nessie_server: NessieServer, nessie_namespace: Path, tmp_path: FilePath
) -> None:
    product = Product(tmp_path)
    location = f"s3://{BUCKET}/{nessie_namespace[-1]}/orders.lance"
    lance.write_dataset(pa.table({"id": [1, 2, 3]}), location, storage_options=dict(nessie_server.storage))
    nessie_server.companion((*nessie_namespace, "orders"), location)
    nessie_server.companion((*nessie_namespace, "kept"), f"s3://{BUCKET}/kept.lance")
    nessie_server.table((*nessie_namespace, "plain"))
    product.configure(
        {"impl": "iceberg", **nessie_server.properties}, namespace="sales", include=[f"{path_key(nessie_namespace)}$*"]
    )
    assert [outcome["state"] for outcome in product.sync()["outcomes"]] == ["done"] * 3
    assert product.copies() == {"orders": location, "kept": f"s3://{BUCKET}/kept.lance"}
    with closing(product.index) as index, index.read() as connection:
        covered = read_coverage(connection, "origin", published_revision(connection, "origin"))
    assert covered[path_key(nessie_namespace)].complete
    # Another commit to the branch is no change of this table.
    nessie_server.table((*nessie_namespace, "other"))
    (plan,) = product.sync()["plans"]
    assert (plan["changes"], plan["refusals"]) == ([], [])
    nessie_server.drop((*nessie_namespace, "orders"), "tables")
    assert [outcome["state"] for outcome in product.sync()["outcomes"]] == ["done"]
    assert list(product.copies()) == ["kept"]


def test_a_mirror_into_nessie_is_refused_in_its_plan(
    nessie_server: NessieServer, nessie_namespace: Path, tmp_path: FilePath
) -> None:
    product = Product(tmp_path)
    product.store("origin").add_table(("sales", "orders"), f"s3://{BUCKET}/sales/orders.lance")
    product.configure(
        {"impl": MEMORY, "file": str(tmp_path / "origin.json")}, {"impl": "iceberg", **nessie_server.properties},
        namespace=path_key(nessie_namespace),
    )  # fmt: skip
    (plan,) = product.sync()["plans"]
    assert plan["changes"] == []
    (refusal,) = plan["refusals"]
    assert refusal["reason"] == "no_location"
    assert "the server is Nessie" in refusal["detail"]
    assert "choose a catalog that stores locations" in refusal["detail"]
    declared = product.run("declare", f"s3://{BUCKET}/sales/orders.lance", "--into", "target", "--yes")
    assert declared.exit_code != 0
    assert "choose a catalog that stores locations" in declared.output
