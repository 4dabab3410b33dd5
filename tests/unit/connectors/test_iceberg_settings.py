"""Settings of Iceberg sources, and signatures of requests to AWS."""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path as FilePath
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from federator.connector import ConfigError
from federator.model import NamespaceRecord, local_path
from federator_connectors import polaris
from federator_connectors.iceberg import CONNECTOR

KEY = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"credential": "no-colon"}, "client_id:client_secret"),
        ({"credential": ":secret"}, "client_id:client_secret"),
        ({"auth_token": "t", "credential": "a:b"}, "auth_token: cannot be used with credential"),
        ({"credential": "a:b", "sigv4": "true", "signing_region": "eu-west-1"}, "credential: cannot be used with sigv4"),
        ({"sigv4": "true"}, "signing_region: required, because sigv4 is set"),
        ({"auth_token": "t", "header.Authorization": "Basic x"}, "auth_token: cannot be used with header.authorization"),
        ({"warehouses": "a,,b"}, "names separated by commas"),
        ({"warehouses": "a,a"}, "without duplicates"),
        ({"endpoint": "localhost:8181"}, "starts with http"),
    ],
)
def test_settings_are_checked(properties: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        CONNECTOR.parse_settings({"endpoint": "http://h:8181", **properties})
    assert problem in str(refused.value)


def test_the_credential_is_in_no_text() -> None:
    settings = CONNECTOR.parse_settings({"endpoint": "http://h:8181", "credential": "me:hunter2"})
    assert "hunter2" not in repr(settings)


class Aws(BaseHTTPRequestHandler):
    """Checks signatures by the text of AWS Signature Version 4, without AWS's library, and answers as an Iceberg server."""

    verdicts: list[tuple[str, bool]]

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.verdicts.append((self.path, self._is_signed(body)))
        # An address that cannot be parsed is ignored.
        overrides = b'{"prefix":"catalogs/1","uri":"https://[elsewhere/"}'
        answer = b'{"defaults":{},"overrides":%s}' % overrides if "/config" in self.path else b'{"namespaces":[]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = _answer

    def log_message(self, *_: object) -> None: ...

    def _is_signed(self, body: bytes) -> bool:
        match = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=AKID/((\d{8})/eu-west-1/glue/aws4_request), SignedHeaders=(\S+), Signature=(\w+)",
            self.headers["Authorization"],
        )
        assert match, self.headers["Authorization"]
        scope, day, names, signature = match.groups()
        url = urlsplit(self.path)
        pairs = sorted((quote(key, safe="~"), quote(value, safe="~")) for key, value in parse_qsl(url.query, True))
        headers = "".join(f"{name}:{self.headers[name].strip()}\n" for name in names.split(";"))
        # Services other than S3 encode the path of a request once more.
        canonical = [
            self.command, quote(url.path, safe="/~"), "&".join(f"{key}={value}" for key, value in pairs), headers, names,
            hashlib.sha256(body).hexdigest(),
        ]  # fmt: skip
        request = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
        text = "\n".join(["AWS4-HMAC-SHA256", self.headers["X-Amz-Date"], scope, request])
        key = f"AWS4{KEY}".encode()
        for part in (day, "eu-west-1", "glue", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return hmac.digest(key, text.encode(), "sha256").hex() == signature


@contextmanager
def aws() -> Iterator[tuple[str, list[tuple[str, bool]]]]:
    verdicts: list[tuple[str, bool]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Aws,), {"verdicts": verdicts}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/iceberg", verdicts
    finally:
        server.shutdown()
        server.server_close()


def test_requests_to_aws_are_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": KEY}.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with aws() as (url, verdicts):
        properties: dict[str, Any] = {"endpoint": url, "sigv4": "true", "signing_region": "eu-west-1"}
        with CONNECTOR.open("signed", CONNECTOR.parse_settings(properties)) as catalog:
            assert catalog.list_namespaces(("123:s3tables/x", "sp ace", "ü%/")) == []
    assert verdicts == [
        ("/iceberg/v1/config?warehouse=123%3As3tables%2Fx", True),
        ("/iceberg/v1/catalogs/1/namespaces?parent=sp%20ace%1F%C3%BC%25%2F", True),
    ]


def test_signatures_need_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    settings = CONNECTOR.parse_settings({"endpoint": "http://h:1", "sigv4": "true", "signing_region": "eu-west-1"})
    with pytest.raises(ConfigError, match="credentials of AWS"):
        CONNECTOR.open("signed", settings)


@pytest.mark.parametrize("connector", [CONNECTOR, polaris.CONNECTOR], ids=lambda connector: connector.impl)
@pytest.mark.parametrize(
    ("root", "location"),
    [
        (None, f"{FilePath.cwd().as_uri()}/w/sp%20ace/100%25.lance"), ("/lake", "file:///lake/w/sp%20ace/100%25.lance"),
        ("file:///lake/", "file:///lake/w/sp%20ace/100%25.lance"), ("s3://lake/a", "s3://lake/a/w/sp ace/100%.lance"),
    ],
)  # fmt: skip
def test_a_default_location_is_a_uri_below_the_root(
    connector: Any, root: str | None, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = connector.parse_settings({"endpoint": "http://127.0.0.1:9"} | ({"root": root} if root else {}))
    with connector.open("lake", settings) as catalog:
        monkeypatch.setattr(type(catalog), "describe_namespace", lambda _, path: NamespaceRecord("lake", path))
        assert catalog.default_location(("w", "sp ace", "100%")) == location
        assert local_path(location) in (None, f"{'/lake' if root else FilePath.cwd()}/w/sp ace/100%.lance")
