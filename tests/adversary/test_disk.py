"""The short form of ``disk``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversary.deployment import Deployment
from tests.adversary.disk import fill
from tests.fixtures.glue import GlueAccount
from tests.fixtures.hive import Metastore

pytestmark = pytest.mark.timeout(600)


def test_a_full_disk_fails_with_its_remedy_and_loses_nothing(
    spark: None, hive2_uri: str, glue_account: GlueAccount, tmp_path: Path
) -> None:
    metastore = Metastore(hive2_uri, 1, (), tmp_path, 2)
    deployment = Deployment(tmp_path / "deployment", metastore, glue_account, schedule="", back=False)
    try:
        failed, wrong = fill(deployment, (1, 8), seed=3, size=12)
    finally:
        deployment.close()
    assert wrong == []
    assert failed > 0
