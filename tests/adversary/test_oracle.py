"""The oracle of ``kills`` can fail: without the product's last observation of the origin it reports a deregistration."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from federator.apply.confirmation import OriginConfirmation
from federator.apply.store_journal import StoreJournal
from federator.planning.changes import Action
from tests.adversary.books import SLACK, violations
from tests.adversary.churn import Churn
from tests.adversary.deployment import BACK, FORWARD, Deployment, end
from tests.fixtures.glue import GlueAccount
from tests.fixtures.hive import Metastore

pytestmark = pytest.mark.timeout(600)


def test_the_oracle_reports_what_the_last_observation_prevents(
    spark: None, hive2_uri: str, glue_account: GlueAccount, tmp_path: Path
) -> None:
    metastore = Metastore(hive2_uri, 1, (), tmp_path, 2)
    deployment = Deployment(tmp_path / "deployment", metastore, glue_account, schedule="", back=False)
    try:
        churn = deployment.churn(FORWARD, 5, 6)
        deployment.sync()
        assert _returned_in_time(deployment, churn, "t0") == []
        with pytest.MonkeyPatch.context() as without:
            without.setattr(OriginConfirmation, "_find_refusal", lambda _: None)
            assert _returned_in_time(deployment, churn, "t1") == ["t1 was deregistered while its origin was there"]
    finally:
        deployment.close()


def test_the_end_of_an_unfinished_declaration_is_no_deregistration(
    spark: None, hive2_uri: str, glue_account: GlueAccount, tmp_path: Path
) -> None:
    deployment = Deployment(tmp_path / "deployment", Metastore(hive2_uri, 1, (), tmp_path, 2), glue_account, schedule="")
    try:
        churn = deployment.churn(BACK, 5, 1)
        deployment.sync()
        churn.create()
        process = deployment.command("sync")
        # The proxy forwards the first of the two calls of a declaration, and nobody makes the second.
        deployment.writes.watch = lambda catalog, port: end(process, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        deployment.writes.watch = lambda catalog, port: None
        time.sleep(SLACK)
        deployment.sync()
        writes = deployment.writes.of(deployment.database(BACK))
        assert [(write.kind, write.table) for write in writes] == [
            ("begin", "t0"), ("update", "t0"), ("begin", "t1"), ("undo", "t1"), ("begin", "t1"), ("update", "t1")
        ]  # fmt: skip
        assert violations(writes, churn.book, churn.people) == []
    finally:
        deployment.close()


def _returned_in_time(deployment: Deployment, churn: Churn, name: str) -> list[str]:
    """Drop an origin; it is back, for longer than the oracle's slack, when its copy is to be deregistered. Return the violations."""
    location = churn.book.removing(name)
    churn.origin.drop(name)
    deployment.sync()
    time.sleep(1.1)
    intend, returned = StoreJournal.record_intent, list[str]()

    def slowly(journal: StoreJournal, intent: Any, *more: Any) -> Any:
        if intent.change.action is Action.DEREGISTER_TABLE:
            churn.origin.create(name, location)
            churn.book.created(name, location)
            returned.append(intent.change.target_path)
            time.sleep(SLACK + 0.5)
        return intend(journal, intent, *more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StoreJournal, "record_intent", slowly)
        deployment.sync()
    assert [path.rpartition("$")[2] for path in returned] == [name]
    return violations(deployment.writes.of(deployment.database(FORWARD)), churn.book, churn.people)
