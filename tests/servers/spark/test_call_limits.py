"""The tasks of a crawl have the source's call limits together: a server with these limits refuses none of their requests."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from federator.service import Federator
from federator.settings import parse_settings
from tests.fixtures.glue import GlueAccount
from tests.fixtures.limited_server import LimitedServer

pytestmark = pytest.mark.timeout(120)
_DATABASES, _PER_SECOND = 60, 20
_SECRETS = ("access_key_id", "secret_access_key", "session_token")


@pytest.mark.usefixtures("spark")
def test_a_crawl_stays_within_the_limit_of_its_catalog(glue_account: GlueAccount, tmp_path: Path) -> None:
    client = glue_account.client()
    for number in range(_DATABASES):
        client.create_database(DatabaseInput={"Name": f"db{number:03d}"})
    with LimitedServer(glue_account.url, latency=0.01, per_second=_PER_SECOND, burst=_PER_SECOND / 2) as server:
        limits = {"limit.requests-per-second": _PER_SECOND, "limit.concurrent-requests": 2}
        result = crawl(tmp_path, {**glue_account.properties, "endpoint": server.url, **limits})
    assert (result.state, result.namespaces) == ("ok", _DATABASES + 1)
    assert len(server.served) > _DATABASES
    assert server.refused == []


def crawl(directory: Path, properties: dict[str, Any]) -> Any:
    for key in _SECRETS:
        (directory / key).write_text(properties[key], encoding="utf-8")
        (directory / key).chmod(0o600)
    source = {"impl": "glue", **properties, **{key: f"file:{directory / key}" for key in _SECRETS}}
    settings = parse_settings({"sources": {"lake": source}, "verify": {"enabled": False}}, directory / "federator.toml")
    federator = Federator.open(settings)
    with closing(federator.index):
        return federator.crawl().sources["lake"]
