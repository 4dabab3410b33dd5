"""The alert rules and a real scrape, checked by Prometheus' own tool."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from federator.api.app import create_app
from federator.connector.call_metrics import PROCESS_METER, CallMeter
from federator.notify import deliver_due
from federator.settings import Settings
from federator.store import Index, call_metrics
from federator.store.leases import acquire_lease
from tests.fixtures.availability import fail_or_skip
from tests.unit.api.conftest import Api
from tests.unit.notify.conftest import failed
from tests.unit.notify.receiver import Receiver

DEPLOY = Path(__file__).parents[3] / "deploy" / "prometheus"


@pytest.fixture(scope="module")
def promtool() -> Callable[..., subprocess.CompletedProcess[str]]:
    if shutil.which("promtool") is None:
        fail_or_skip("promtool is not here: apt-get install prometheus")

    def run(*words: str, text: str | None = None, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["promtool", *words], input=text, cwd=folder, capture_output=True, text=True, check=False)

    return run


Promtool = Callable[..., subprocess.CompletedProcess[str]]


def test_the_rules_are_rules(promtool: Promtool) -> None:
    done = promtool("check", "rules", str(DEPLOY / "alerts.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr
    named = set(re.findall(r"alert: (\w+)", (DEPLOY / "alerts.yaml").read_text()))
    assert f"{len(named)} rules found" in done.stdout


def test_the_rules_fire_when_they_should_and_not_before(promtool: Promtool, tmp_path: Path) -> None:
    for file in (DEPLOY / "alerts.yaml", Path(__file__).parent / "rules.yaml"):
        shutil.copy(file, tmp_path)
    done = promtool("test", "rules", "rules.yaml", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    # A rule that is wrong does not pass.
    broken = (tmp_path / "alerts.yaml").read_text().replace("federator_worker_leading) == 0", "federator_worker_leading) == 1")
    (tmp_path / "alerts.yaml").write_text(broken)
    assert promtool("test", "rules", "rules.yaml", folder=tmp_path).returncode != 0


def test_a_scrape_is_as_it_should_be(
    promtool: Promtool, sqlite_index: Index, settings_of: Callable[..., Settings], note: Callable[..., None], receiver: Receiver
) -> None:
    settings = settings_of(ops={"kind": "webhook", "url": receiver.url})
    note(sqlite_index, failed("lake"))
    deliver_due(sqlite_index, settings, at_once=True)
    # Calls of other tests in this process are no part of the scrape.
    PROCESS_METER.drain()
    meter = CallMeter()
    meter.record_call("lake", "observe", 0.2)
    meter.record_call("lake", "observe", 700.0, {"17": 1})
    call_metrics.flush_meter(sqlite_index, meter)
    with acquire_lease(sqlite_index, "source:lake"):
        scrape = Api(create_app(settings)).get("/metrics").text
    assert 'federator_catalog_call_seconds_bucket{le="0.25",operation="observe",source="lake"} 1.0' in scrape
    assert 'federator_catalog_errors_total{code="17",operation="observe",source="lake"} 1.0' in scrape
    assert 'federator_lease_held{lease="source:lake"} 1.0' in scrape
    done = promtool("check", "metrics", text=scrape)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        promtool("check", "metrics", text=scrape.replace("federator_catalog_errors_total", "federatorErrors")).returncode != 0
    )
