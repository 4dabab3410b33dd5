"""Operators and a sensor for Apache Airflow 3: ``FederatorSyncOperator``, ``FederatorPlanOperator``, ``FederatorFreshnessSensor``.

The Airflow connection ``federator_default`` names the service: its host is a URL, such as ``https://federator.example``, or a name with
``schema`` and ``port``; its password is the token.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from airflow.sdk import BaseHook, BaseOperator, BaseSensorOperator

from federator.client import Client, WaitTimeout
from federator.integrations.runs import run_and_wait

DEFAULT_CONNECTION = "federator_default"


def open_client(connection_id: str) -> Client:
    """Return a client of the service that an Airflow connection names."""
    connection = BaseHook.get_connection(connection_id)
    host = connection.host or "127.0.0.1"
    url = host if "://" in host else f"{connection.schema or 'https'}://{host}"
    return Client(f"{url}:{connection.port}" if connection.port else url, token=connection.password)


class _RunOperator(BaseOperator):
    """Request a run, wait for it, and return its summary. ``run_timeout`` is in seconds.

    The task fails if the run ends in a state that is not in ``accepted``. With ``("ok", "held")`` a plan that waits for a person is
    no failure.
    """

    template_fields = ("mirrors",)
    kind: Literal["plan", "sync"]

    def __init__(
        self, *, mirrors: Sequence[str] = (), accepted: Sequence[str] = ("ok",), run_timeout: float = 3600.0,
        connection_id: str = DEFAULT_CONNECTION, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.mirrors = mirrors
        self.accepted = accepted
        self.run_timeout = run_timeout
        self.connection_id = connection_id

    def execute(self, context: Any) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        with open_client(self.connection_id) as client:
            return run_and_wait(client, self.kind, self.mirrors, accepted=self.accepted, timeout=self.run_timeout)


class FederatorSyncOperator(_RunOperator):
    """Crawl, plan and apply mirrors."""

    kind = "sync"


class FederatorPlanOperator(_RunOperator):
    """Plan mirrors without applying anything."""

    kind = "plan"


class FederatorFreshnessSensor(BaseSensorOperator):
    """Wait until the last crawl of each source (default: all) is ok and at most ``max_age`` old."""

    template_fields = ("sources",)

    def __init__(
        self, *, sources: Sequence[str] = (), max_age: timedelta, connection_id: str = DEFAULT_CONNECTION, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.sources = sources
        self.max_age = max_age
        self.connection_id = connection_id

    def poke(self, context: Any) -> bool:  # noqa: ARG002 - Airflow's signature
        with open_client(self.connection_id) as client:
            try:
                client.wait_for_freshness(self.sources, since=datetime.now(UTC) - self.max_age, timeout=0)
            except WaitTimeout as error:
                self.log.info("%s", error)
                return False
            return True
