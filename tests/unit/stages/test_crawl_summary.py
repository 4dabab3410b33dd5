"""The line of progress that a crawl ends with."""

from __future__ import annotations

from federator.connector.errors import StateError
from federator.pipeline.publish import PublishResult
from federator.stages.crawl import _summarize

DOWN = str(StateError("hive2: 127.0.0.1:9083 cannot be reached", hint="check the uri and the network"))


def test_a_failed_crawl_claims_to_have_read_nothing() -> None:
    failed = PublishResult(
        3, "failed", namespaces=2, tables=4, message=DOWN, full_because=f"its change feed could not be read: {DOWN}"
    )
    assert _summarize(failed) == "hive2: 127.0.0.1:9083 cannot be reached"


def test_a_partial_crawl_has_counts_and_a_message_in_one_line() -> None:
    partial = PublishResult(3, "partial", namespaces=2, tables=4, message=DOWN)
    assert _summarize(partial) == "4 tables in 2 namespaces; hive2: 127.0.0.1:9083 cannot be reached"
