"""What a token and a SAS allow, locations and settings for which there is none, and libraries that are imported only when needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federator.connector import CatalogError, ConfigError, InvalidInput, Unsupported
from federator.model import TableRecord
from federator.settings import SourceSettings, parse_settings
from federator.vending import Access, SourceVendor, TableGrant
from federator.vending.azure import correlation_id
from federator.vending.gcs_boundary import build_access_boundary
from federator.vending.locations import parse_prefix, parse_storage_account
from federator.vending.vendors import build_vendor
from tests.fixtures.gcs_store import GcsStore

_KEYS = st.text(st.sampled_from("ab'\"|()*${}/.é漢 "), min_size=1, max_size=12)
AZURE = {"account_name": "acct", "tenant_id": "t", "client_id": "c", "client_secret": "${TEST_VEND_KEY}"}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_VEND_KEY", "long-lived")


def rules(location: str, access: Access = Access.READ) -> dict[str, Any]:
    """The boundary in the form that google-auth sends."""
    boundary = build_access_boundary(parse_prefix(location), access)
    rule = {
        "availableResource": boundary.resource, "availablePermissions": list(boundary.permissions),
        "availabilityCondition": {"expression": boundary.expression},
    }  # fmt: skip
    return {"accessBoundary": {"accessBoundaryRules": [rule]}}


@pytest.mark.parametrize("access", list(Access))
def test_a_token_allows_no_neighbour_whatever_the_action(access: Access) -> None:
    allowed, store = rules("gs://lake/a.lance", access), GcsStore()
    assert store.allows(allowed, "read", "a.lance/x")
    assert store.allows(allowed, "list", "a.lance/_versions/")
    for action in ("create", "delete"):
        assert store.allows(allowed, action, "a.lance/x") is (access is Access.WRITE)
    for action in ("read", "create", "delete", "list"):
        for name in ("", "a", "a.lance", "a.lance2/x", "b.lance/x"):
            assert not store.allows(allowed, action, name), (action, name)
        assert not GcsStore(bucket="lakes").allows(allowed, action, "a.lance/x")


@given(_KEYS, _KEYS)
def test_names_are_literal_in_the_condition_of_a_token(key: str, other: str) -> None:
    try:
        prefix = parse_prefix(f"gs://lake/{key}")
    except InvalidInput:
        return
    allowed, store = rules(f"gs://lake/{key}"), GcsStore()
    assert store.allows(allowed, "read", f"{prefix.key}/x")
    if not f"{other}/x".startswith(f"{prefix.key}/"):
        assert not store.allows(allowed, "read", f"{other}/x")
        assert not store.allows(allowed, "list", f"{other}/x")


@pytest.mark.parametrize(
    ("location", "error"),
    [
        ("gs://lake", InvalidInput), ("gs://lake/", InvalidInput), ("gs://lake/a/../b", InvalidInput),
        ("gs://k:s@lake/x", InvalidInput),
        ("gs://lake/a%2Fb", InvalidInput), ("gs://lake/a\\b", InvalidInput), ("az://lake", InvalidInput), ("az://Lake/x", InvalidInput),
        ("az://la--ke/x", InvalidInput), ("az://$root/x", InvalidInput), ("az://lake/a//b", InvalidInput),
        ("abfss://lake@acct.dfs.core.windows.net", InvalidInput), ("file:///lake/x", Unsupported),
        ("/lake/x", Unsupported), ("hdfs://lake/x", Unsupported),
    ],
)  # fmt: skip
def test_locations_that_are_not_one_table(location: str, error: type[CatalogError]) -> None:
    with pytest.raises(error):
        parse_prefix(location)


def test_the_account_and_the_container_of_a_location() -> None:
    for location in ("abfss://lake@acct.dfs.core.windows.net/a/t/", "wasbs://lake@acct.blob.core.windows.net/a/t"):
        prefix = parse_prefix(location)
        assert (prefix.bucket, prefix.key, parse_storage_account(prefix.host)) == ("lake", "a/t", "acct")
    assert parse_prefix("az://lake/a/t").host == ""
    with pytest.raises(InvalidInput):
        parse_storage_account("UPPER!.dfs.core.windows.net")


def source(vend: Any, storage: dict[str, str] | None = None, impl: str = "dir", **more: Any) -> SourceSettings:
    raw = {"impl": impl, "vend": vend, "storage": storage or {}, **more}
    return parse_settings({"sources": {"s": raw}}, Path("f.toml")).sources["s"]


def vendor(vend: str, storage: dict[str, str]) -> SourceVendor:
    built = build_vendor(source(vend, storage, root="/lake"))
    assert built is not None
    return built


def grant(location: str) -> TableGrant:
    return TableGrant("s", ("s", "t"), TableRecord("s", ("t",), location), Access.READ, "token:ci")


UNITY = {"impl": "unity", "endpoint": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"vend": ["sts", "catalog"], **UNITY}, "with 'catalog' first"), ({"vend": [], **UNITY}, "a list of different ones"),
        ({"vend": ["gcs", "gcs"], **UNITY}, "a list of different ones"), ({"vend": True, **UNITY}, "a list of different ones"),
        ({"vend": ["gcs", "static"], **UNITY}, "a list of different"), ({"vend": ["gcs", "none"], **UNITY}, "a list of different"),
        ({"vend": ["catalog", "sts"], **UNITY}, "need each other"), ({"vend": "aws", **UNITY}, "'catalog', 'sts', 'gcs', 'azure'"),
        ({"vend": "catalog", "impl": "dir", "root": "/lake"}, "gets no credentials from its catalog"),
        ({"vend": "catalog", "impl": "polaris", "endpoint": "http://127.0.0.1:1"}, "gets no credentials from its catalog"),
    ],
)  # fmt: skip
def test_settings_that_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        source(**keys)


def test_the_order_is_that_of_the_list() -> None:
    several = source(["catalog", "gcs", "azure"], **UNITY)
    assert several.vend_methods == ("catalog", "gcs", "azure")
    built = build_vendor(several)
    assert built is not None
    assert [vendor.method for vendor in built.vendors] == ["catalog", "gcs", "azure"]
    assert [vendor.method for vendor in built.vendors if vendor.applies_to("gs://lake/t")] == ["catalog", "gcs"]
    assert not built.applies_to("/lake/t")
    assert [source(vend, **UNITY).vend_methods for vend in ("none", "static", "gcs")] == [(), (), ("gcs",)]


@pytest.mark.parametrize(
    ("vend", "storage", "message"),
    [
        ("gcs", {}, "no service account"), ("gcs", {"google_service_account_key": "${TEST_VEND_KEY}"}, "cannot be read"),
        ("gcs", {"google_service_account": "${TEST_VEND_KEY}"}, "cannot be read"),
        ("azure", {"account_name": "acct", "account_key": "${TEST_VEND_KEY}"}, "no service principal"),
        ("azure", {**AZURE, "endpoint": "http://127.0.0.1:1"}, "must be an https URL"),
        ("azure", {key: text for key, text in AZURE.items() if key != "account_name"}, "storage account of az:// locations is unknown"),
    ],
)  # fmt: skip
def test_sources_without_what_could_be_limited(vend: str, storage: dict[str, str], message: str) -> None:
    location = "gs://lake/t.lance" if vend == "gcs" else "az://lake/t.lance"
    with pytest.raises(ConfigError, match=message) as caught:
        vendor(vend, storage).issue(grant(location))
    assert "long-lived" not in str(caught.value)


@pytest.mark.parametrize(("vend", "module"), [("gcs", "google.auth"), ("azure", "azure.identity")])
def test_a_missing_library_names_its_extra(vend: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    storage = AZURE if vend == "azure" else {"google_service_account_key": "${TEST_VEND_KEY}"}
    built = vendor(vend, storage)
    location = "gs://lake/t.lance" if vend == "gcs" else "az://lake/t.lance"
    for attempt in (built.check, lambda: built.issue(grant(location))):
        with pytest.raises(ConfigError, match="is not installed") as caught:
            attempt()
        assert caught.value.hint == f"pip install 'lance-federator[{vend}]'"


def test_a_key_of_another_kind_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    # Such a file may name any URL to fetch a token from.
    monkeypatch.setenv("TEST_VEND_KEY", json.dumps({"type": "external_account", "token_url": "http://127.0.0.1:1"}))
    with pytest.raises(ConfigError, match="cannot be read"):
        vendor("gcs", {"google_service_account_key": "${TEST_VEND_KEY}"}).issue(grant("gs://lake/t.lance"))


def test_a_table_in_another_account_gets_nothing() -> None:
    with pytest.raises(Unsupported, match="other accounts than acct"):
        vendor("azure", AZURE).issue(grant("abfss://lake@other.dfs.core.windows.net/t.lance"))


def test_principals_have_different_correlation_ids() -> None:
    assert correlation_id("token:ci") == correlation_id("token:ci") != correlation_id("token:cd")


def test_the_libraries_of_the_clouds_are_imported_only_when_they_are_used() -> None:
    code = (
        "import sys, federator.vending\n"
        "found = [name for name in sys.modules if name.startswith(('google.auth', 'azure', 'boto3'))]\n"
        "sys.exit(', '.join(found) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
