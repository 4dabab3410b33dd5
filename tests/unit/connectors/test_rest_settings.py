"""Settings of a REST source: the keys of Lance's own client, secrets, and capabilities."""

from __future__ import annotations

import pickle

import pytest

from federator.connector import ConfigError
from federator_connectors._rest.settings import RestSettings
from federator_connectors.rest import CONNECTOR

URI = {"uri": "http://127.0.0.1:9"}


def test_headers_and_credentials_go_with_every_request_and_into_no_text() -> None:
    settings = CONNECTOR.parse_settings(
        {**URI, "rest.header.x-tenant": "a", "header.Cookie": "c=s3cret", "api_key": "k3y", "auth_token": "t0ken"}
    )
    assert settings.all_headers == {"x-tenant": "a", "Cookie": "c=s3cret", "Authorization": "Bearer t0ken", "x-api-key": "k3y"}
    assert not any(text in repr(settings) for text in ("s3cret", "k3y", "t0ken"))
    assert pickle.loads(pickle.dumps(settings)) == settings


@pytest.mark.parametrize(
    "key", ["header.Authorization", "header.x-api-key", "header.Cookie", "header.x-auth-token", "auth_token", "api_key"]
)
def test_a_secret_must_be_a_reference(key: str) -> None:
    with pytest.raises(ConfigError, match="must not stand in the file"):
        RestSettings.check_references("rest", {f"rest.{key}": "clear"}, where="f: ")
    RestSettings.check_references("rest", {f"rest.{key}": "${TOKEN}", "rest.header.x-tenant": "a"}, where="f: ")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, "rest.uri: required"),
        ({"uri": "ftp://x"}, "uri"),
        ({**URI, "protocol": "soap"}, "protocol"),
        ({**URI, "delimiter": "."}, "delimiter"),
        ({**URI, "delimiter": "a/b"}, "delimiter"),
        ({**URI, "header.": "x"}, "unknown key"),
        ({**URI, "page_size": "0"}, "page_size"),
        ({**URI, "tls.key_file": "/k"}, "tls.cert_file"),
        ({**URI, "auth_token": "t", "header.authorization": "Bearer u"}, "auth_token"),
    ],
)
def test_a_mistake_names_its_key(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CONNECTOR.parse_settings(properties)


def test_capabilities_follow_the_protocol() -> None:
    lance = CONNECTOR.capabilities_for(CONNECTOR.parse_settings(URI))
    general = CONNECTOR.capabilities_for(CONNECTOR.parse_settings({**URI, "protocol": "general"}))
    assert (lance.can_alter, lance.keeps_properties, lance.writes_tables) == (False, False, True)
    assert (general.can_alter, general.keeps_properties, general.writes_tables) == (True, True, False)
    assert CONNECTOR.capabilities_for(CONNECTOR.parse_settings({**URI, "keeps_properties": "true"})).keeps_properties
    for name, allowed in (("a$b", False), ("..", False), ("a/b", False), ("a.b", True), ("line\nbreak", True)):
        assert lance.names.allows(name) is allowed, name
    assert general.names.allows("a$b")
    assert CONNECTOR.capabilities_for(CONNECTOR.parse_settings({**URI, "delimiter": "||"})).names.allows("a$b|c")
    assert lance.restricted_by((), {"refused"}).names.allows("a.b")


def test_a_namespace_may_not_end_so_that_the_delimiter_begins_earlier() -> None:
    for delimiter, refused, allowed in (
        ("$", ("$", "a$"), ("a",)),
        ("$$", ("$", "a$"), ("$a", "a$b")),
        ("aba", ("xab",), ("xa", "aab.", "b")),
        ("::", (":", "a:"), (":a",)),
    ):
        capabilities = CONNECTOR.capabilities_for(CONNECTOR.parse_settings({**URI, "delimiter": delimiter}))
        namespaces = capabilities.name_rules(namespace=True)
        for name in (*refused, *allowed):
            is_read_as_one = (name + delimiter).split(delimiter) == [name, ""]
            assert namespaces.allows(name) is is_read_as_one is (name in allowed), (delimiter, name)
    assert CONNECTOR.capabilities_for(CONNECTOR.parse_settings({**URI, "delimiter": "$$"})).names.allows("a$"), "the last name"
