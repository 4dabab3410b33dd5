"""The settings of the Hive connectors, and how a crawl is dealt to its readers; no server needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from federator.connector import ConfigError
from federator.model import Path
from federator_connectors._hive.crawl import _balanced
from federator_connectors._hive.settings import endpoints
from federator_connectors.hive2 import CONNECTOR as HIVE2
from federator_connectors.hive3 import CONNECTOR as HIVE3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("thrift://metastore:9083", [("metastore", 9083)]),
        ("metastore", [("metastore", 9083)]),
        ("thrift://a:1,thrift://b:2/", [("a", 1), ("b", 2)]),
        ("thrift://[::1]:9083, thrift://10.0.0.1", [("::1", 9083), ("10.0.0.1", 9083)]),
    ],
)
def test_endpoints(text: str, expected: list[tuple[str, int]]) -> None:
    assert list(endpoints(text)) == expected


@pytest.mark.parametrize("text", ["", "http://a:1", "thrift://", "a:0", "a:65536", "a:b", "a,,b", "thrift://a/path", "a b"])
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"hive3\.uri(.|\n)*thrift://host:port"):
        HIVE3.configure({"hive3.uri": text})


def test_defaults_and_limits() -> None:
    settings = HIVE3.configure({"hive3.uri": "a", "storage.region": "us-west-2"})
    assert (settings.pool_size, settings.timeout, settings.storage) == (3, 60, {"region": "us-west-2"})
    with pytest.raises(ConfigError, match=r"hive3\.uri"):
        HIVE3.configure({})
    with pytest.raises(ConfigError, match="from 1 up"):
        HIVE3.configure({"uri": "a", "client.pool-size": "0"})


def test_hive_is_another_name_of_hive2() -> None:
    assert HIVE2.configure({"hive.uri": "a", "root": "/r"}) == HIVE2.configure({"hive2.uri": "a", "hive2.root": "/r"})


def test_concurrency_is_the_pool() -> None:
    assert HIVE2.concurrency({}) == 3
    assert HIVE2.concurrency({"hive.client.pool-size": "8"}) == 8
    assert HIVE3.concurrency({"client.pool-size": "5", "uri": "${SECRET}"}) == 5
    assert HIVE3.concurrency({"client.pool-size": "${POOL}"}) == 3


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize("sizes", [[], [5], [1000] * 20, [15_000, *[10] * 40], [0] * 2000])
def test_readers_that_take_turns_get_equal_work(parts: int, sizes: list[int]) -> None:
    weights: dict[Path, int] = {("hive", f"db{number}"): size for number, size in enumerate(sizes)}
    shards = _balanced(weights, parts)
    dealt = [[path for shard in shards[number::parts] for path in shard.namespaces] for number in range(parts)]
    assert sorted(path for hand in dealt for path in hand) == sorted(weights)
    assert len(shards) <= 16 * parts
    loads = [sum(weights[path] + 10 for path in hand) for hand in dealt]
    assert max(loads) <= max(sum(loads) / parts, max(sizes, default=0)) + max(sizes, default=0) / 2 + 10


def test_a_missing_library_is_named_with_the_extra_that_brings_it() -> None:
    script = """
import sys
sys.modules["hmsclient"] = None
from federator_connectors.hive3 import CONNECTOR
CONNECTOR.open("lake", CONNECTOR.configure({"uri": "a"}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "ConfigError: the connector 'hive3' needs the module 'hmsclient" in done.stderr
    assert "lance-federator[hive]" in done.stderr
