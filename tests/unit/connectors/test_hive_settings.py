"""Settings of the Hive connectors, and the division of a crawl into shards. Needs no server."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path as Path_

import pytest

from federator.connector import ConfigError, InvalidInput
from federator.connector.crawl import distribute
from federator.lance.identifiers import IdentifierParser
from federator.model import Path
from federator_connectors._hive.base_connector import HiveConnector
from federator_connectors._hive.crawl import _SHARDS_PER_PART
from federator_connectors._hive.settings import parse_endpoints
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
    assert list(parse_endpoints(text)) == expected


@pytest.mark.parametrize("text", ["", "http://a:1", "thrift://", "a:0", "a:65536", "a:b", "a,,b", "thrift://a/path", "a b"])
def test_an_invalid_endpoint_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"hive3\.uri(.|\n)*thrift://host:port"):
        HIVE3.parse_settings({"hive3.uri": text})


def test_every_property_has_a_text_with_its_default() -> None:
    options = {field.metadata["key"]: field for field in fields(HIVE3.settings_type) if "key" in field.metadata}
    required = {key for key, field in options.items() if field.metadata.get("required")}
    assert required == {"uri"}
    silent = [
        key
        for key, field in options.items()
        if key.startswith("client.") and field.default is not None and "Default: " not in field.metadata["doc"]
    ]
    assert not silent
    assert {"client.pool-size", "root", "storage.*"} <= set(options), "the spec's own"


@pytest.mark.parametrize(
    ("properties", "complaint"),
    [
        ({"client.pool_size": "3"}, "unknown key"),
        ({"client.pool-size": "many"}, "from 1 up"),
        ({"client.auth": "ldap"}, "one of none, plain, kerberos"),
        ({"client.auth": "plain", "client.user": "svc"}, r"client\.password: required"),
        ({"client.auth": "kerberos"}, r"client\.kerberos\.principal: required"),
        ({"client.user": "svc"}, r"client\.auth = plain"),
        ({"client.kerberos.keytab": "k"}, r"client\.auth = kerberos"),
        ({"client.tls.ca-file": "ca.pem"}, r"client\.tls\.enabled = true"),
        ({"client.tls.check-hostname": "false"}, r"client\.tls\.enabled = true"),
        ({"client.tls.enabled": "yes"}, "one of true, false"),
    ],
)
def test_what_is_wrong_or_has_no_effect_is_refused(properties: dict[str, str], complaint: str) -> None:
    for connector in (HIVE2, HIVE3):
        with pytest.raises(ConfigError) as caught:
            connector.parse_settings(
                {f"{connector.impl}.uri": "a", **{f"{connector.impl}.{k}": v for k, v in properties.items()}}
            )
        assert re.search(complaint, str(caught.value))


def test_the_password_is_a_secret(tmp_path: Path_, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "password").write_text("s3cret\n")
    login = {"uri": "a", "client.auth": "plain", "client.user": "svc", "client.password": f"file:{tmp_path}/password"}
    settings = HIVE3.parse_settings(login)
    assert settings.password == "s3cret"
    assert "s3cret" not in repr(settings)
    with pytest.raises(ConfigError, match="must not stand in the file"):
        HIVE3.settings_type.check_references("hive3", {"hive3.client.password": "s3cret"}, where="")


def test_defaults_and_limits() -> None:
    settings = HIVE3.parse_settings({"hive3.uri": "a", "storage.region": "us-west-2"})
    assert (settings.pool_size, settings.timeout, settings.storage) == (3, 60, {"region": "us-west-2"})
    with pytest.raises(ConfigError, match=r"hive3\.uri"):
        HIVE3.parse_settings({})
    with pytest.raises(ConfigError, match="from 1 up"):
        HIVE3.parse_settings({"uri": "a", "client.pool-size": "0"})


def test_hive_is_another_name_of_hive2() -> None:
    assert HIVE2.parse_settings({"hive.uri": "a", "root": "/r"}) == HIVE2.parse_settings({"hive2.uri": "a", "hive2.root": "/r"})


def test_concurrency_is_the_pool() -> None:
    assert HIVE2.crawl_concurrency({}) == 3
    assert HIVE2.crawl_concurrency({"hive.client.pool-size": "8"}) == 8
    assert HIVE3.crawl_concurrency({"client.pool-size": "5", "uri": "${SECRET}"}) == 5
    assert HIVE3.crawl_concurrency({"client.pool-size": "${POOL}"}) == 3


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [1, 5, 40, 2000])
def test_readers_that_take_turns_get_equal_work(parts: int, count: int) -> None:
    namespaces: list[Path] = [("hive", f"db{number}") for number in range(count)]
    shards = distribute(namespaces, parts * _SHARDS_PER_PART)
    dealt = [[path for shard in shards[number::parts] for path in shard] for number in range(parts)]
    assert sorted(path for hand in dealt for path in hand) == sorted(namespaces)
    assert 0 < len(shards) <= 16 * parts
    assert all(shards)
    # Shards differ by one namespace at most, and a reader has up to 16 of them.
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 16


def test_a_missing_library_is_named_with_the_extra_that_brings_it() -> None:
    script = """
import sys
sys.modules["hmsclient"] = None
from federator_connectors.hive3 import CONNECTOR
CONNECTOR.open_catalog("lake", CONNECTOR.parse_settings({"uri": "a"}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "ConfigError: the connector 'hive3' needs the module 'hmsclient" in done.stderr
    assert "lance-federator[hive]" in done.stderr


def test_databases_have_shorter_names_than_tables() -> None:
    for connector, above in ((HIVE2, []), (HIVE3, ["hive"])):
        ids = IdentifierParser("lake", connector.capabilities)
        assert ids.parse_new_namespace([*above, "d" * 128])
        assert ids.parse_new_table([*above, "d", "t" * 256])
        with pytest.raises(InvalidInput, match="at most 128"):
            ids.parse_new_namespace([*above, "d" * 129])
        with pytest.raises(InvalidInput, match="at most 256"):
            ids.parse_new_table([*above, "d", "t" * 257])


def test_ugi_is_a_user_with_groups_and_needs_a_metastore_without_login() -> None:
    uri = {"uri": "thrift://h:1"}
    assert HIVE3.parse_settings({**uri, "ugi": "ann:a, b"}).ugi == ("ann", ("a", "b"))
    assert HIVE3.parse_settings({**uri, "ugi": "ann"}).ugi == ("ann", ())
    for wrong in ({"ugi": ":a"}, {"ugi": "ann", "client.auth": "kerberos", "client.kerberos.principal": "hive/_HOST@X"}):
        with pytest.raises(ConfigError, match="ugi"):
            HIVE3.parse_settings({**uri, **wrong})


@pytest.mark.parametrize(
    ("root", "uri"),
    [("/data/a b", "file:///data/a%20b"), ("s3://lake/", "s3://lake"), ("file:/x", "file:/x"), (None, Path_.cwd().as_uri())],
)
def test_a_root_is_a_uri(root: str | None, uri: str) -> None:
    properties = {"uri": "thrift://h:1"} if root is None else {"uri": "thrift://h:1", "root": root}
    assert HIVE3.parse_settings(properties).root_uri == uri


@pytest.mark.parametrize("connector", [HIVE2, HIVE3])
def test_a_filter_hook_is_known_by_a_setting(connector: HiveConnector) -> None:
    """Plans of a mirror whose origin filters its listings are held if a namespace is emptied at once."""
    for text, filtered in (("true", True), ("false", False)):
        settings = connector.parse_settings({"uri": "thrift://a", "listing_filtered": text})
        assert connector.capabilities_for(settings) == replace(connector.capabilities, listing_filtered=filtered)
    assert not connector.capabilities_for(connector.parse_settings({"uri": "thrift://a"})).listing_filtered
