"""Deployments that read each other: a source that leads back to its own service is refused, so that no index grows without end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from federator.api.app import create_app
from federator.cli import health_checks
from federator.connector import InvalidInput
from federator.lance.circles import DEPLOYMENT_KEY, find_circle, require_no_circle
from federator.model import Coverage
from federator.planning.identity import IdentityReading
from federator.registry import open_catalog
from federator.service import Federator
from federator.settings import Settings, parse_settings
from federator.store import Index, deployment, identities, migrations, open_index, records
from tests.fixtures.index_content import fill
from tests.fixtures.serving import loopback_listener, serve_app
from tests.fixtures.spark import MEMORY

pytestmark = pytest.mark.timeout(120)


@dataclass
class Deployment:
    """A running service with a catalog in memory and a source ``next``, which is the service of another deployment or its own."""

    settings: Settings
    index: Index

    @property
    def fingerprint(self) -> str:
        with self.index.read() as connection:
            return deployment.read_fingerprint(connection)

    def find_circle(self) -> tuple[str, ...] | None:
        """What a crawl of ``next`` finds."""
        with open_catalog(self.settings.source("next").spec) as catalog:
            return find_circle(catalog, self.fingerprint)

    def crawl(self) -> None:
        """Read ``next`` into the index as a crawl does, without Spark."""
        with open_catalog(self.settings.source("next").spec) as catalog:
            rows = [row for shard in catalog.plan_shards() for row in catalog.read_shard(shard)]
            with self.index.write() as connection:
                identities.judge_readings(connection, "next", [IdentityReading(catalog.identity())], crawl=True)
        fill(self.index, "next", *(row for row in rows if not isinstance(row, Coverage)))


@pytest.fixture
def deployments(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[list[Deployment]]:
    """As many deployments as the test's parameter says, which also names the protocol. Each reads the next, the last one the first."""
    number_of_deployments, protocol = request.param
    listeners = [loopback_listener() for _ in range(number_of_deployments)]
    urls = [f"http://127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]
    with ExitStack() as stack:
        made = []
        for number, listener in enumerate(listeners):
            directory = tmp_path / str(number)
            directory.mkdir()
            sources = {
                "mem": {"impl": MEMORY, "file": str(directory / "mem.json")},
                "next": {"impl": "rest", "rest.uri": urls[(number + 1) % len(urls)], "rest.protocol": protocol},
            }
            body = {"sources": sources, "index": {"url": f"sqlite:///{directory}/index.db"}}
            settings = parse_settings(body, directory / "federator.toml")
            index = open_index(settings.index.url)
            stack.callback(index.close)
            migrations.upgrade_schema(index)
            for name in sources:
                fill(index, name)
            stack.enter_context(serve_app(create_app(settings), listener))
            made.append(Deployment(settings, index))
        yield made


@pytest.mark.parametrize("deployments", [(1, "lance"), (1, "general")], indirect=True)
def test_a_source_that_is_the_service_itself_is_refused(deployments: list[Deployment]) -> None:
    (own,) = deployments
    with open_catalog(own.settings.source("next").spec) as catalog:
        assert catalog.describe_namespace(()).properties == {DEPLOYMENT_KEY: own.fingerprint}
        with pytest.raises(InvalidInput, match="next: its root is this service itself"):
            require_no_circle(catalog, own.fingerprint)
    with open_catalog(own.settings.source("mem").spec) as catalog:
        require_no_circle(catalog, own.fingerprint)


@pytest.mark.parametrize("deployments", [(2, "lance"), (3, "lance"), (2, "general"), (3, "general")], indirect=True)
def test_a_circle_through_other_deployments_is_recognised(deployments: list[Deployment]) -> None:
    first, *others = deployments
    # Before the others have read their sources, they have nothing of this one.
    assert first.find_circle() is None
    for other in reversed(others):
        other.crawl()
    assert first.find_circle() == ("next",) if len(others) == 1 else ("next", "next")


@pytest.mark.parametrize("deployments", [(1, "lance"), (1, "general")], indirect=True)
def test_a_crawl_and_the_doctor_refuse_a_circle(deployments: list[Deployment], spark: None) -> None:
    (own,) = deployments
    result = Federator(own.settings, own.index).crawl(["mem", "next"])
    assert result.sources["mem"].state == "ok"
    assert "next: its root is this service itself" in result.errors["next"]
    with own.index.read() as connection:
        assert records.published_revision(connection, "mem") is not None
    check = health_checks._check_source(own.settings.source("next").spec, own.fingerprint)
    assert (check.state, check.source) == (health_checks.FAIL, "next")
    assert check.message == result.errors["next"].partition("\n")[0]
    assert health_checks._check_source(own.settings.source("mem").spec, own.fingerprint).state == health_checks.OK
