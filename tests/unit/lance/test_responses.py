"""Responses of the facade: storage options, URIs, properties and modes."""

from __future__ import annotations

import pytest

from federator.connector import InvalidInput
from federator.lance.facade_mapping import (
    namespace_from_properties,
    namespace_to_properties,
    parse_choice,
    storage_options_for,
    table_uri,
    validate_table_properties,
)
from federator.model import NamespaceRecord, TableRecord

OWN = {"region": "us-west-2", "access_key_id": "AKIA", "secret_access_key": "hidden", "endpoint": "http://own"}


def record(**properties: str) -> TableRecord:
    return TableRecord("s", ("db", "t"), "s3://b/t.lance", properties)


def test_a_tables_parameters_lie_over_the_sources_own_options() -> None:
    table = record(region="eu-central-1", timeout="30s")
    assert storage_options_for(OWN, table) == {**OWN, "region": "eu-central-1", "timeout": "30s"}


def test_what_identifies_marks_or_counts_is_no_storage_option() -> None:
    noise = {"EXTERNAL": "TRUE", "table_type": "lance", "federator.op": "1", "numFiles": "3", "transient_lastDdlTime": "9"}
    assert storage_options_for({}, record(**noise)) == {}


def test_secrets_in_a_tables_parameters_are_left_out() -> None:
    assert storage_options_for({}, record(aws_secret_access_key="x", password="y", session_token="z")) == {}


@pytest.mark.parametrize("key", ["endpoint", "aws_endpoint", "AWS_ENDPOINT_URL", "proxy_url", "fs.s3a.endpoint"])
def test_an_endpoint_in_a_tables_parameters_takes_the_credentials_away(key: str) -> None:
    options = storage_options_for(OWN, record(**{key: "http://evil"}))
    assert options == {"region": "us-west-2", "endpoint": "http://own"}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("region", "x.evil.example/"), ("AWS_REGION", "evil.example#"), ("aws_default_region", "a@evil"), ("region", ""),
        ("account_name", "evil"), ("azure_storage_account_name", "evil"), ("aws_bucket", "evil.example/"),
    ],
)  # fmt: skip
def test_a_tables_parameters_lead_to_no_other_host(key: str, text: str) -> None:
    """Clients make the host of a store from them, and send it the credentials."""
    assert storage_options_for(OWN, record(**{key: text})) == OWN


def test_a_caller_may_decline_credentials() -> None:
    assert storage_options_for(OWN, record(), vend_credentials=False) == {"region": "us-west-2", "endpoint": "http://own"}
    assert storage_options_for(OWN, record(), vend_credentials=True) == OWN


def test_only_known_options_of_a_scheme_are_plain_and_a_source_may_name_more() -> None:
    secrets = {"connection_string": "c", "passphrase": "p", "header.x-auth": "h", "account_name": "of azure"}
    storage = {**secrets, "aws_region": "eu", "AWS_ENDPOINT": "http://user:pass@own:1", "x-tenant": "a", "timeout": "9s"}
    plain = {"aws_region": "eu", "AWS_ENDPOINT": "http://own:1", "timeout": "9s"}
    assert storage_options_for(storage, record(), vend_credentials=False) == plain
    assert storage_options_for(storage, record(), vend_credentials=False, plain=("x-tenant",)) == {**plain, "x-tenant": "a"}


@pytest.mark.parametrize(
    ("location", "uri"),
    [
        ("/a b/ü.lance", "file:///a%20b/%C3%BC.lance"),
        ("file:/a", "file:///a"),
        ("file:///a%20b", "file:///a%20b"),
        ("/a%20b#c", "file:///a%2520b%23c"),
        ("s3://b/k?x#y", "s3://b/k%3Fx%23y"),
        ("s3://b/a%20b/50%", "s3://b/a%20b/50%25"),
        ("abfss://c@acct.dfs.core.windows.net/x", "abfss://c@acct.dfs.core.windows.net/x"),
    ],
)
def test_a_location_as_a_valid_uri(location: str, uri: str) -> None:
    assert table_uri(location) == uri


def test_a_namespaces_locations_travel_as_properties() -> None:
    given = {
        "database.location-uri": "s3://b/db",
        "database.description": "orders",
        "database.owner": "ann",
        "database.owner-type": "USER",
        "team": "sales",
    }
    made = namespace_from_properties("s", ("db",), given)
    assert made == NamespaceRecord("s", ("db",), {"database.owner-type": "USER", "team": "sales"}, "s3://b/db", "orders", "ann")
    assert namespace_to_properties(made) == given
    assert namespace_to_properties(namespace_from_properties("s", ("db",), None)) == {}


def test_a_new_table_is_external_and_lance_or_refused() -> None:
    given = {"table_type": "LANCE", "EXTERNAL": "true", "team": "a"}
    assert validate_table_properties(given) == {"team": "a"}
    assert validate_table_properties(None) == {}
    for contradiction in ({"table_type": "iceberg"}, {"EXTERNAL": "FALSE"}):
        with pytest.raises(InvalidInput):
            validate_table_properties(contradiction)


@pytest.mark.parametrize("spelling", ["ExistOk", "EXIST_OK", "exist_ok", "existok", "Exist-Ok", '"ExistOk"'])
def test_a_mode_in_any_spelling(spelling: str) -> None:
    assert parse_choice("mode", spelling, "create", "exist_ok") == "exist_ok"


def test_a_mode_that_is_none() -> None:
    assert parse_choice("mode", None, "create", "exist_ok") == "create"
    assert parse_choice("mode", "", "create", "exist_ok") == "create"
    with pytest.raises(InvalidInput, match="one of create, exist_ok"):
        parse_choice("mode", "exist", "create", "exist_ok")
