"""The short form of ``toxics``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from federator.connector import StateError
from tests.adversary.deployment import Deployment
from tests.adversary.toxics import poison
from tests.adversary.toxiproxy import Toxiproxy
from tests.fixtures.availability import fail_or_skip
from tests.fixtures.glue import GlueAccount
from tests.fixtures.hive import Metastore

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def proxies() -> Iterator[Toxiproxy]:
    try:
        server = Toxiproxy()
    except StateError as error:
        fail_or_skip(str(error))
    with server:
        yield server


def test_connections_that_fail_in_others_ways_cost_no_declaration(
    spark: None, proxies: Toxiproxy, hive2_uri: str, glue_account: GlueAccount, tmp_path: Path
) -> None:
    metastore = Metastore(hive2_uri, 1, (), tmp_path, 2)
    deployment = Deployment(
        tmp_path / "deployment", metastore, glue_account, schedule="", back=False, through=proxies.add_proxy
    )
    try:
        states, wrong = poison(deployment, proxies, rounds=4, seed=5, size=20)
    finally:
        deployment.close()
    assert wrong == []
    assert states["partial"] + states["failed"] > 0
