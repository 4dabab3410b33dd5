"""The short form of ``clocks``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversary.clocks import DAY, Clock, faked_postgres, lease, misled
from tests.adversary.deployment import FORWARD, Deployment
from tests.fixtures.glue import GlueAccount
from tests.fixtures.hive import Metastore

pytestmark = pytest.mark.timeout(600)


def test_a_clock_that_was_a_day_ahead_delays_nothing(
    spark: None, hive2_uri: str, glue_account: GlueAccount, tmp_path: Path
) -> None:
    metastore = Metastore(hive2_uri, 1, (), tmp_path, 2)
    deployment = Deployment(tmp_path / "deployment", metastore, glue_account, back=False, min_miss_interval="4s")
    try:
        assert misled(deployment, Clock(tmp_path / "clock"), deployment.churn(FORWARD, 3, 6), DAY) == []
    finally:
        deployment.close()


def test_a_lease_ends_although_the_clock_of_the_database_went_back() -> None:
    with faked_postgres() as (url, clock):
        assert lease(url, clock) == []
