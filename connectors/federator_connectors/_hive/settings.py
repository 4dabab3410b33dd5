"""The settings of both Hive connectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from federator.connector import Settings, option, positive

DEFAULT_PORT = 9083
DEFAULT_POOL = 3

Endpoint = tuple[str, int]

_ENDPOINT = re.compile(r"(?:thrift://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s/:\[\]]+)(?::(?P<port>\d{1,5}))?/?")


def endpoints(text: str) -> tuple[Endpoint, ...]:
    """``thrift://host:port[,thrift://host:port...]`` as pairs; the port defaults to 9083. Raises ValueError."""
    found = [_ENDPOINT.fullmatch(part.strip()) for part in text.split(",")]
    pairs = [(match["host"].strip("[]"), int(match["port"] or DEFAULT_PORT)) for match in found if match]
    if len(pairs) < len(found) or not all(0 < port < 65536 for _, port in pairs):
        raise ValueError("thrift://host:port, several separated by commas")
    return tuple(pairs)


@dataclass(frozen=True, kw_only=True)
class HiveSettings(Settings):
    """How to reach one metastore. ``uri`` is parsed into its endpoints, which are tried in order."""

    uri: tuple[Endpoint, ...] = option("uri", doc="thrift://host:port of the metastore; several, separated by commas, are tried in order.", parse=endpoints, required=True)  # fmt: skip  # noqa: E501
    pool_size: int = option("client.pool-size", DEFAULT_POOL, doc="Connections at most, and shards of a crawl read at once.", parse=positive)  # fmt: skip  # noqa: E501
    timeout: int = option("client.timeout", 60, doc="Seconds to wait for an answer; a connection is given up after 10 at most.", parse=positive)  # fmt: skip  # noqa: E501


def pool_size(properties: Mapping[str, str]) -> int:
    """``client.pool-size`` of raw properties, bare or prefixed, without resolving anything; the default if it is no number."""
    given = next((value for key, value in properties.items() if key.endswith("client.pool-size")), "")
    return int(given) if re.fullmatch(r"[1-9][0-9]{0,3}", str(given)) else DEFAULT_POOL
