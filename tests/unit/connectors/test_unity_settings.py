"""The settings of the Unity connector; no server needed."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path as FilePath

import pytest

from federator.connector import ConfigError
from federator.connector.options import secret_keys
from federator_connectors.unity import CONNECTOR

NEEDED = {"endpoint": "http://localhost:8080", "catalog": "main"}


def test_every_property_of_the_spec_has_its_default() -> None:
    settings = CONNECTOR.parse_settings(NEEDED)
    assert (settings.endpoint, settings.catalog) == ("http://localhost:8080", "main")
    assert (settings.api_path, settings.auth_token, settings.root) == ("/api/2.1/unity-catalog", None, None)
    assert (settings.connect_timeout, settings.read_timeout, settings.max_retries) == (10, 60, 3)
    assert settings.storage == {}
    assert settings.limits.attempts == 4


def test_every_property_of_the_spec_can_be_set() -> None:
    given = {
        "unity.endpoint": "https://dbc.example.com:8443/", "unity.catalog": "lake", "unity.api_path": "/api/2.0/unity-catalog/",
        "unity.auth_token": "t0ken", "unity.connect_timeout": "3", "unity.read_timeout": "7", "unity.max_retries": "0",
        "unity.root": "s3://lake", "unity.storage.region": "us-west-2",
    }  # fmt: skip
    settings = CONNECTOR.parse_settings(given)
    assert (settings.endpoint, settings.api_path) == ("https://dbc.example.com:8443", "/api/2.0/unity-catalog")
    assert (settings.connect_timeout, settings.read_timeout, settings.max_retries) == (3, 7, 0)
    assert (settings.auth_token, settings.root, settings.storage) == ("t0ken", "s3://lake", {"region": "us-west-2"})
    assert settings.limits.attempts == 1
    assert "t0ken" not in repr(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_what_is_required_is_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"unity\.endpoint: required"):
        CONNECTOR.parse_settings({"catalog": "main"})
    assert CONNECTOR.parse_settings({"endpoint": "http://localhost:8080"}).catalog is None


def test_one_way_to_sign_in_is_enough() -> None:
    assert not CONNECTOR.parse_settings(NEEDED).has_token
    assert CONNECTOR.parse_settings({**NEEDED, "client_id": "a", "client_secret": "b"}).has_token
    for given, message in (
        ({"client_id": "a"}, r"unity\.client_secret: required"),
        ({"client_secret": "b"}, r"unity\.client_id: required"),
        ({"auth_token": "t", "client_id": "a", "client_secret": "b"}, "cannot be used with client_id"),
    ):
        with pytest.raises(ConfigError, match=message):
            CONNECTOR.parse_settings({**NEEDED, **given})


def test_timeouts_are_in_seconds_or_milliseconds() -> None:
    assert CONNECTOR.parse_settings(NEEDED).timeouts == (10, 60)
    both = {"connect_timeout": "3", "connect_timeout_ms": "1500", "read_timeout_ms": "300000"}
    assert CONNECTOR.parse_settings({**NEEDED, **both}).timeouts == (1.5, 300)


def test_seconds_that_must_be_meant_as_milliseconds_are_doubted() -> None:
    assert CONNECTOR.parse_settings({**NEEDED, "connect_timeout": "60", "read_timeout": "900"}).list_doubts() == []
    doubts = CONNECTOR.parse_settings({**NEEDED, "connect_timeout": "10000", "read_timeout": "300000"}).list_doubts()
    assert [doubt.partition(" ")[0] for doubt in doubts] == ["unity.connect_timeout", "unity.read_timeout"]
    assert "unity.read_timeout_ms" in doubts[1]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("endpoint", "localhost:8080"), ("endpoint", "ftp://a"), ("endpoint", "http://"), ("endpoint", "http://user:pw@a"),
        ("endpoint", "http://a:b"), ("endpoint", "http://a?x=y"), ("catalog", ""), ("catalog", "a.b"), ("catalog", "a/b"),
        ("catalog", "a b"), ("api_path", "api"), ("api_path", "/api?x"), ("connect_timeout", "0"), ("read_timeout", "1.5"),
        ("read_timeout", "60000ms"), ("max_retries", "-1"), ("max_retries", "many"),
    ],
)  # fmt: skip
def test_a_bad_value_is_named_with_what_is_allowed(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"unity\.{key}(.|\n)*allowed:") as caught:
        CONNECTOR.parse_settings({f"unity.{key}": value, **{k: v for k, v in NEEDED.items() if k != key}})
    assert "pw" not in str(caught.value).replace("'http://user:pw@a'", "")


def test_the_token_is_a_reference(monkeypatch: pytest.MonkeyPatch, tmp_path: FilePath) -> None:
    assert "auth_token" in secret_keys(CONNECTOR.settings_type)
    with pytest.raises(ConfigError, match="must not stand in the file"):
        CONNECTOR.settings_type.check_references("unity", {"unity.auth_token": "t0ken"}, where="")
    monkeypatch.setenv("UNITY_TEST_TOKEN", "from-environment")
    assert CONNECTOR.parse_settings({**NEEDED, "auth_token": "${UNITY_TEST_TOKEN}"}).auth_token == "from-environment"
    (tmp_path / "token").write_text("from-file\n")
    assert CONNECTOR.parse_settings({**NEEDED, "auth_token": f"file:{tmp_path}/token"}).auth_token == "from-file"


def test_every_option_is_explained() -> None:
    from dataclasses import fields

    for option in fields(CONNECTOR.settings_type):
        assert re.search(r"\w.*\.", option.metadata["doc"]), option.name


def test_importing_the_connector_is_cheap() -> None:
    heavy = ("requests", "pyarrow", "lance_namespace", "pandas", "stamina")
    script = f"import sys, federator_connectors.unity; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("endpoint", "same", "other"),
    [
        ("http://unity:8080", ["http://UNITY:8080/", "HTTP://unity:8080"], ["https://unity:8080", "http://unity:8081"]),
        ("http://unity", ["http://unity:80", "http://unity/"], ["http://unity:443", "https://unity"]),
        ("https://unity/a", ["https://unity:443//a/", "https://Unity/a"], ["https://unity/A", "https://unity"]),
        ("http://[::1]:8080", ["http://[::1]:8080/"], ["http://[::1]"]),
    ],
)
def test_sources_with_different_spellings_of_one_endpoint_share_their_locks(
    endpoint: str, same: list[str], other: list[str]
) -> None:
    def server_of(text: str) -> str | None:
        settings = CONNECTOR.parse_settings({"endpoint": text, "auth_token": "t"})
        capabilities = CONNECTOR.capabilities_for(settings)
        assert capabilities.declarations_race_in == capabilities.locations.exclusive_in
        return capabilities.declarations_race_in

    assert {server_of(text) for text in same} == {server_of(endpoint)}
    assert server_of(endpoint) not in map(server_of, other)
