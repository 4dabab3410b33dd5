"""The short form of ``workers``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.adversary.deployment import Deployment
from tests.adversary.workers import migrated, storm
from tests.fixtures.glue import GlueAccount
from tests.fixtures.hive import Metastore

pytestmark = pytest.mark.timeout(600)


def test_a_worker_that_is_frozen_beyond_its_lease_writes_nothing(
    spark: None, hive2_uri: str, glue_account: GlueAccount, postgres_database: Callable[[], str], tmp_path: Path
) -> None:
    metastore = Metastore(hive2_uri, 1, (), tmp_path, 2)
    deployment = Deployment(tmp_path / "deployment", metastore, glue_account, url=migrated(postgres_database()))
    try:
        happened, wrong = storm(deployment, freezes=1, seed=1, size=10)
    finally:
        deployment.close()
    assert wrong == []
    assert happened["frozen in mid-call"] == 1
