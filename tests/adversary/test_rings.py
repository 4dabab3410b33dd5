"""The short form of ``rings``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversary.rings import FORMS, run_circle
from tests.fixtures.glue import GlueAccount
from tests.fixtures.hive import Metastore

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("form", FORMS)
def test_three_catalogs_come_to_rest(form: str, spark: None, hive2_uri: str, glue_account: GlueAccount, tmp_path: Path) -> None:
    assert run_circle(form, Metastore(hive2_uri, 1, (), tmp_path, 2), glue_account, tmp_path / form) == []
