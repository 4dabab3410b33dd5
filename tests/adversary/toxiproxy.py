"""The server of toxiproxy, a fault injector of another project: connections that are cut, slow, silent, or arrive in pieces.

Its API: https://github.com/Shopify/toxiproxy#http-api.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import requests

from federator.connector import StateError
from tests.fixtures.postgres import free_port

_INSTALL = Path(__file__).parents[2] / ".ci" / "toxiproxy"
# Of the first request, which may come before the server listens.
_REPEATS = requests.adapters.Retry(connect=20, backoff_factor=0.05, backoff_max=0.5)


@dataclass(frozen=True, slots=True)
class Toxic:
    """A fault of connections. ``attributes`` are those of its type; ``stream`` is ``upstream`` (requests) or ``downstream``."""

    type: str
    stream: str
    attributes: dict[str, int]
    #: the share of the connections that have it, from 0 to 1
    toxicity: float


class Toxiproxy:
    """A context manager around the server, on loopback. Raise StateError if it cannot be built."""

    def __init__(self) -> None:
        port = free_port()
        built = subprocess.run([_INSTALL], capture_output=True, text=True, check=False)
        if built.returncode:
            raise StateError(f"toxiproxy could not be built: {built.stderr.strip()[-500:]}")
        self._url = f"http://127.0.0.1:{port}"
        self._server = subprocess.Popen(
            [built.stdout.strip(), "-host", "127.0.0.1", "-port", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._session = requests.Session()
        self._session.mount(self._url, requests.adapters.HTTPAdapter(max_retries=_REPEATS))

    def __enter__(self) -> Self:
        self._ask("GET", "version")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._session.close()
        self._server.kill()
        self._server.wait()

    def add_proxy(self, name: str, url: str) -> str:
        """Add a proxy before a server, and return the URL through it."""
        parts = urlsplit(url)
        proxy = self._ask("POST", "proxies", {"name": name, "listen": "127.0.0.1:0", "upstream": parts.netloc, "enabled": True})
        return parts._replace(netloc=proxy["listen"]).geturl()

    def add(self, name: str, toxic: Toxic) -> None:
        """Add a toxic to the proxy ``name``, for connections that are open, too."""
        fields = ("type", "stream", "attributes", "toxicity")
        self._ask("POST", f"proxies/{name}/toxics", {field: getattr(toxic, field) for field in fields})

    def clear(self) -> None:
        """Remove all toxics."""
        self._ask("POST", "reset")

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        # It refuses requests of browsers, which it knows by their agent.
        response = self._session.request(method, f"{self._url}/{path}", json=body, timeout=30, headers={"User-Agent": "tests"})
        response.raise_for_status()
        return response.json() if response.content else None
