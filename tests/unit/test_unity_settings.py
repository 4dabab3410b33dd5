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
    settings = CONNECTOR.configure(NEEDED)
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
    settings = CONNECTOR.configure(given)
    assert (settings.endpoint, settings.api_path) == ("https://dbc.example.com:8443", "/api/2.0/unity-catalog")
    assert (settings.connect_timeout, settings.read_timeout, settings.max_retries) == (3, 7, 0)
    assert (settings.auth_token, settings.root, settings.storage) == ("t0ken", "s3://lake", {"region": "us-west-2"})
    assert settings.limits.attempts == 1
    assert "t0ken" not in repr(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings


@pytest.mark.parametrize("missing", sorted(NEEDED))
def test_what_is_required_is_asked_for(missing: str) -> None:
    with pytest.raises(ConfigError, match=rf"unity\.{missing}: required"):
        CONNECTOR.configure({key: value for key, value in NEEDED.items() if key != missing})


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
        CONNECTOR.configure({f"unity.{key}": value, **{k: v for k, v in NEEDED.items() if k != key}})
    assert "pw" not in str(caught.value).replace("'http://user:pw@a'", "")


def test_the_token_is_a_reference(monkeypatch: pytest.MonkeyPatch, tmp_path: FilePath) -> None:
    assert "auth_token" in secret_keys(CONNECTOR.settings_type)
    with pytest.raises(ConfigError, match="must not stand in the file"):
        CONNECTOR.settings_type.check_references("unity", {"unity.auth_token": "t0ken"}, where="")
    monkeypatch.setenv("UNITY_TEST_TOKEN", "from-environment")
    assert CONNECTOR.configure({**NEEDED, "auth_token": "${UNITY_TEST_TOKEN}"}).auth_token == "from-environment"
    (tmp_path / "token").write_text("from-file\n")
    assert CONNECTOR.configure({**NEEDED, "auth_token": f"file:{tmp_path}/token"}).auth_token == "from-file"


def test_every_option_is_explained() -> None:
    from dataclasses import fields

    for option in fields(CONNECTOR.settings_type):
        assert re.search(r"\w.*\.", option.metadata["doc"]), option.name


def test_importing_the_connector_is_cheap() -> None:
    heavy = ("requests", "pyarrow", "lance_namespace", "pandas", "stamina")
    script = f"import sys, federator_connectors.unity; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
