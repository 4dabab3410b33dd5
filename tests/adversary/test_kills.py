"""The short form of ``kills``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversary.deployment import Deployment
from tests.adversary.kills import storm
from tests.fixtures.glue import GlueAccount
from tests.fixtures.hive import Metastore

pytestmark = pytest.mark.timeout(600)


def test_killed_processes_leave_nothing_behind(spark: None, hive2_uri: str, glue_account: GlueAccount, tmp_path: Path) -> None:
    metastore = Metastore(hive2_uri, 1, (), tmp_path, 2)
    deployment = Deployment(tmp_path / "deployment", metastore, glue_account)
    try:
        happened, wrong = storm(deployment, kills=4, seed=7, size=12, life=4.0)
    finally:
        deployment.close()
    assert wrong == []
    assert sum(count for what, count in happened.items() if " at a " in what) == 4
    assert happened["create by forward"] >= 12
