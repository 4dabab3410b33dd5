"""A resource (``sync``, ``plan``, ``wait_for_freshness``) and a sensor of crawls for Dagster."""

# Dagster reads annotations at run time, so they are not postponed here.
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster

from federator.client import Client
from federator.integrations.runs import run_and_wait


class FederatorResource(dagster.ConfigurableResource[Any]):
    """One service. ``timeout`` is the limit of a run, in seconds. ``token`` is best a ``dagster.EnvVar``."""

    url: str
    token: str | None = None
    timeout: float = 3600.0

    def open_client(self) -> Client:
        """Return a client, to be used in a ``with`` block."""
        return Client(self.url, token=self.token)

    def sync(self, mirrors: Sequence[str] = (), *, accepted: Sequence[str] = ("ok",)) -> dict[str, Any]:
        """Crawl, plan and apply mirrors. Raise RunNotAccepted if it ends in a state that is not ``accepted``."""
        with self.open_client() as client:
            return run_and_wait(client, "sync", mirrors, accepted=accepted, timeout=self.timeout)

    def plan(self, mirrors: Sequence[str] = (), *, accepted: Sequence[str] = ("ok",)) -> dict[str, Any]:
        """Plan mirrors without applying anything. Raise RunNotAccepted as ``sync`` does."""
        with self.open_client() as client:
            return run_and_wait(client, "plan", mirrors, accepted=accepted, timeout=self.timeout)

    def wait_for_freshness(self, sources: Sequence[str] = (), *, max_age: timedelta) -> None:
        """Wait until the last crawl of each source (default: all) is ok and at most ``max_age`` old."""
        with self.open_client() as client:
            client.wait_for_freshness(sources, since=datetime.now(UTC) - max_age, timeout=self.timeout)


def build_freshness_sensor(
    *, job: dagster.JobDefinition, sources: Sequence[str], name: str = "federator_crawled", **options: Any
) -> dagster.SensorDefinition:
    """Return a sensor that starts ``job`` once for each new revision of ``sources``, when the last crawl of each is ok.

    ``options`` are further ones of ``dagster.sensor``.
    """

    @dagster.sensor(job=job, name=name, required_resource_keys={"federator"}, **options)
    def crawled(context: dagster.SensorEvaluationContext) -> Any:
        with context.resources.federator.open_client() as client:
            # The last crawl may be of any age: Dagster starts the job only for a new key.
            crawled_sources = client.wait_for_freshness(sources, since=datetime.min.replace(tzinfo=UTC), timeout=60)
        key = ",".join(f"{source.name}@{source.freshness.revision}" for source in crawled_sources)
        return dagster.RunRequest(run_key=key, tags={"federator/revisions": key})

    return crawled
