"""The cluster and the company that the tests of this directory share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.company import Company
from tests.cluster.installation import Installation
from tests.fixtures.cluster import cluster
from tests.fixtures.glue import account

__all__ = ["cluster"]

READABLE, ABSENT = 4, 20


@pytest.fixture(scope="module")
def company(s3_storage_options: dict[str, str], glue_url: str) -> Company:
    """Tables of one database: some are on S3, and the others were never written."""
    made = Company(account(glue_url), "sales", s3_storage_options)
    made.create_tables(range(READABLE), range(READABLE, READABLE + ABSENT))
    return made


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``federator spark pack`` makes."""
    directory = tmp_path_factory.mktemp("archive")
    (directory / "federator.toml").write_text('[sources.lake]\nimpl = "glue"\n')
    Installation(directory, "", {}).run("spark", "pack", "--out", "executors.tar.gz")
    return directory / "executors.tar.gz"
