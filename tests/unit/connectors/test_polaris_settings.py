"""Settings of impl ``polaris``: the spec's properties with their defaults, and invalid values."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path as FilePath

import pytest

from federator.connector import ConfigError
from federator_connectors._polaris.settings import PolarisSettings
from federator_connectors.polaris import CONNECTOR

ENDPOINT = {"endpoint": "http://localhost:8181"}


def test_the_defaults_are_those_of_the_spec() -> None:
    settings = CONNECTOR.parse_settings(ENDPOINT)
    assert (settings.auth_token, settings.connect_timeout, settings.read_timeout, settings.max_retries) == (
        None,
        10_000,
        30_000,
        3,
    )
    assert settings.limits.attempts == 4
    assert (settings.scope, settings.catalogs, settings.threads, settings.page_size) == ("PRINCIPAL_ROLE:ALL", None, 4, None)


def test_keys_are_bare_or_prefixed() -> None:
    given = {"polaris.endpoint": "https://polaris/", "polaris.read_timeout": "500", "max_retries": "0", "catalogs": "a, b.c"}
    settings = CONNECTOR.parse_settings(given)
    assert (settings.endpoint, settings.read_timeout, settings.limits.attempts) == ("https://polaris", 500, 1)
    assert settings.catalogs == ("a", "b.c")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, r"polaris\.endpoint: required"),
        ({"endpoint": "localhost:8181"}, "http:// or https://"),
        ({"endpoint": "ftp://x"}, "http:// or https://"),
        ({"endpoint": "http://"}, "http:// or https://"),
        ({"endpoint": "http://x?y=z"}, "http:// or https://"),
        ({**ENDPOINT, "connect_timeout": "0"}, "connect_timeout"),
        ({**ENDPOINT, "read_timeout": "10s"}, "read_timeout"),
        ({**ENDPOINT, "max_retries": "-1"}, "from 0 to 999"),
        ({**ENDPOINT, "threads": "0"}, "threads"),
        ({**ENDPOINT, "catalogs": "a,,b"}, "catalogs"),
        ({**ENDPOINT, "catalogs": "a,a"}, "without duplicates"),
        ({**ENDPOINT, "client_id": "root"}, r"polaris\.client_secret: required"),
        ({**ENDPOINT, "client_secret": "x"}, r"polaris\.client_id: required"),
        ({**ENDPOINT, "auth_token": "t", "client_id": "root", "client_secret": "x"}, "cannot be used with client_id"),
        ({**ENDPOINT, "auth.token": "x"}, "unknown key"),
        ({**ENDPOINT, "tls.ca_file": "/nonexistent/ca.pem"}, "readable file"),
        ({**ENDPOINT, "tls.key_file": __file__}, r"polaris\.tls\.cert_file: required"),
    ],
)
def test_a_mistake_is_one_line_with_the_allowed_values(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CONNECTOR.parse_settings(properties)


def test_secrets_are_references_in_configuration() -> None:
    for key in ("auth_token", "client_secret"):
        with pytest.raises(ConfigError, match=f"{key}: a secret"):
            PolarisSettings.check_references("polaris", {f"polaris.{key}": "clear"}, where="[sources.x] ")
        PolarisSettings.check_references("polaris", {f"polaris.{key}": "${TOKEN}"}, where="")


def test_secrets_come_from_files_and_are_not_shown(tmp_path: FilePath) -> None:
    (tmp_path / "token").write_text("T0P\n")
    settings = CONNECTOR.parse_settings({**ENDPOINT, "auth_token": f"file:{tmp_path}/token"})
    assert settings.auth_token == "T0P"
    assert "T0P" not in repr(settings)


def test_every_setting_says_what_it_is() -> None:
    assert all(f.metadata.get("doc", "").endswith(".") for f in fields(PolarisSettings))


def test_how_the_server_is_trusted(tmp_path: FilePath) -> None:
    (tmp_path / "pem").touch()
    pem = str(tmp_path / "pem")
    settings = CONNECTOR.parse_settings({**ENDPOINT, "tls.ca_file": pem, "tls.cert_file": pem, "tls.key_file": pem})
    assert (settings.tls.requests_verify, settings.tls.requests_certificate) == (pem, (pem, pem))
    assert CONNECTOR.parse_settings({**ENDPOINT, "tls.verify": "false"}).tls.requests_verify is False
    assert CONNECTOR.parse_settings(ENDPOINT).tls.requests_verify is True


def test_importing_the_connector_imports_no_client() -> None:
    import subprocess
    import sys

    code = "import sys, federator_connectors.polaris as p; p.CONNECTOR.parse_settings({'endpoint': 'http://x'}); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"requests", "lance_namespace", "pyarrow", "stamina"} & set(loaded)
