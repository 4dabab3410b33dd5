"""What a source of impl ``unity`` is configured with: every property of the Lance Unity spec, and ``tls.*``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from federator.connector import Limits, option, positive, secret
from federator_connectors._http.tls import TlsSettings


def _endpoint(text: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.username is not None or parts.query or parts.fragment:
        raise ValueError("http://host[:port] or https://host[:port], without user and password")
    return text.rstrip("/")


def _api_path(text: str) -> str:
    if not re.fullmatch(r"/[A-Za-z0-9._~/-]*", text):
        raise ValueError("a path that starts with /, such as /api/2.1/unity-catalog")
    return text.rstrip("/")


def _name(text: str) -> str:
    if not re.fullmatch(r"[^\x00-\x20./\x7f]{1,255}", text):
        raise ValueError("the name of a catalog, without periods, slashes and white space")
    return text


def _retries(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,2}", text):
        raise ValueError("a whole number from 0 to 99")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class UnitySettings(TlsSettings):
    """How to reach one catalog of a Unity server. Times are seconds."""

    endpoint: str = option("endpoint", doc="URL of the server, e.g. http://localhost:8080.", parse=_endpoint, required=True)
    catalog: str = option("catalog", doc="The catalog: the first level of every identifier.", parse=_name, required=True)
    api_path: str = option(
        "api_path", "/api/2.1/unity-catalog", doc="What stands before every path of the API.", parse=_api_path
    )
    auth_token: str | None = option("auth_token", doc="Bearer token. Default: none is shown.", parse=secret, secret=True)
    connect_timeout: int = option("connect_timeout", 10, doc="Seconds until a connection is given up.", parse=positive)
    read_timeout: int = option("read_timeout", 60, doc="Seconds to wait for an answer.", parse=positive)
    max_retries: int = option("max_retries", 3, doc="How often a read that failed is tried again; writes never are.", parse=_retries)  # fmt: skip  # noqa: E501

    @property
    def limits(self) -> Limits:
        return replace(super().limits, attempts=self.max_retries + 1)
