"""The four ways to authenticate, and the requests that come of them."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import Stubber

from federator.connector import CatalogError, ConfigError, InvalidInput, Unauthenticated
from federator.model import ROOT, TableRecord
from federator_connectors._glue import client as client_module
from federator_connectors._glue.catalog import GlueCatalog
from federator_connectors._glue.client import Clients
from federator_connectors.glue import CONNECTOR
from tests.fixtures.glue import REGION, STATIC, GlueAccount

pytestmark = pytest.mark.timeout(60)

STATIC_PROPERTIES = {"access_key_id": STATIC["aws_access_key_id"], "secret_access_key": STATIC["aws_secret_access_key"]}


@pytest.fixture(autouse=True)
def _no_aws_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def accounts(properties: dict[str, str]) -> list[str]:
    with CONNECTOR.open("aws", CONNECTOR.configure(properties)) as catalog:
        return catalog.list_namespaces(ROOT)


def test_static_and_session_credentials(glue_account: GlueAccount) -> None:
    assert accounts(glue_account.properties) == [glue_account.account_id]
    static = {"endpoint": glue_account.url, "region": REGION, **STATIC_PROPERTIES}
    assert "123456789012" in accounts(static)


def test_the_default_chain(glue_account: GlueAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in glue_account.credentials.items():
        monkeypatch.setenv(name.upper(), value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    assert accounts({"endpoint": glue_account.url}) == [glue_account.account_id]


def test_an_assumed_role_is_renewed_before_it_expires(glue_account: GlueAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    plain = client_module._sts

    def spied(session: Any, settings: Any, region: str | None) -> Any:
        made = plain(session, settings, region)
        made.meta.events.register(
            "provide-client-params.sts.AssumeRole", lambda params, **_: asked.append({**params, "region": region})
        )
        return made

    monkeypatch.setattr(client_module, "_sts", spied)
    clock = [datetime.now(UTC)]
    role = f"arn:aws:iam::{glue_account.account_id}:role/reader"
    settings = CONNECTOR.configure({
        "endpoint": glue_account.url, "sts_endpoint": glue_account.url, "region": REGION, **STATIC_PROPERTIES,
        "assume_role_arn": role, "assume_role_region": "eu-west-1", "assume_role_external_id": "ext",
        "assume_role_session_name": "mine", "assume_role_timeout_sec": "900",
    })  # fmt: skip
    with GlueCatalog("aws", settings, Clients("aws", settings, now=lambda: clock[0])) as catalog:
        assert catalog.list_namespaces(ROOT) == [glue_account.account_id]
        catalog.list_namespaces(ROOT)
        expected = {
            "RoleArn": role,
            "RoleSessionName": "mine",
            "DurationSeconds": 900,
            "ExternalId": "ext",
            "region": "eu-west-1",
        }
        assert asked == [expected]
        clock[0] += timedelta(seconds=600)
        catalog.list_namespaces(ROOT)
        assert len(asked) == 1
        clock[0] += timedelta(seconds=200)
        assert catalog.list_namespaces(ROOT) == [glue_account.account_id]
        assert asked == [expected, expected]


def test_a_role_that_cannot_be_assumed(glue_account: GlueAccount) -> None:
    dead = {**glue_account.properties, "assume_role_arn": "arn:aws:iam::1:role/x", "sts_endpoint": "http://127.0.0.1:9"}
    with pytest.raises(CatalogError) as caught:
        accounts(dead)
    assert caught.value.code == 17


def test_nothing_to_authenticate_with(glue_account: GlueAccount) -> None:
    with pytest.raises(Unauthenticated, match="no usable AWS credentials"):
        accounts({"endpoint": glue_account.url, "region": REGION})
    with pytest.raises(InvalidInput, match="region"):
        accounts({**STATIC_PROPERTIES})
    with pytest.raises(InvalidInput, match="endpoint"):
        accounts({**STATIC_PROPERTIES, "region": REGION, "endpoint": "not a url"})


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"access_key_id": "a"}, "glue.secret_access_key"),
        ({"glue.secret_access_key": "s"}, "glue.access_key_id"),
        ({"session_token": "s"}, "glue.access_key_id"),
        ({"assume_role_timeout_sec": "899"}, "assume_role_timeout_sec"),
        ({"assume_role_timeout_sec": "1h"}, "assume_role_timeout_sec"),
        ({"glue.regoin": "x"}, "glue.regoin"),
    ],
)
def test_mistakes_are_named(properties: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named.replace(".", r"\.")):
        CONNECTOR.configure(properties)


def test_secrets_are_references_and_never_shown(tmp_path: Path) -> None:
    for key in ("access_key_id", "secret_access_key", "session_token", "storage.aws_secret_access_key"):
        with pytest.raises(ConfigError, match=key):
            CONNECTOR.settings_type.check_references("glue", {f"glue.{key}": "clear"}, where="")
    (tmp_path / "key").write_text("hidden-value\n")
    settings = CONNECTOR.configure({"access_key_id": "hidden-id", "secret_access_key": f"file:{tmp_path / 'key'}"})
    assert settings.secret_access_key == "hidden-value"
    assert settings.assume_role_timeout_sec == 3600
    assert "hidden" not in repr(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_requests_fit_the_service_model() -> None:
    """botocore's Stubber checks requests and answers against the published model of Glue."""
    settings = CONNECTOR.configure({"region": REGION, **STATIC_PROPERTIES})
    catalog = GlueCatalog("aws", settings)
    account, path = "111122223333", ("111122223333", "db", "t")
    native = {
        "Name": "t",
        "DatabaseName": "db",
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"table_type": "lance"},
        "StorageDescriptor": {"Location": "s3://l/t"},
        "CreateTime": datetime(2026, 1, 1, tzinfo=UTC),
        "VersionId": "7",
        # What GetTable answers and UpdateTable refuses.
        "UpdateTime": datetime(2026, 1, 2, tzinfo=UTC),
        "CatalogId": account,
        "CreatedBy": "arn:x",
        "IsRegisteredWithLakeFormation": True,
        "IsMaterializedView": False,
    }
    wanted = {
        "Name": "t",
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"table_type": "lance", "k": "v"},
        "StorageDescriptor": {"Location": "s3://l/t2"},
        "Description": "d",
    }
    with Stubber(catalog._clients.reads) as reads, Stubber(catalog._clients.writes) as writes:
        root = {"CatalogId": account, "Name": "root"}
        child = {"CatalogId": f"{account}:fed", "Name": "fed"}
        reads.add_response("get_catalogs", {"CatalogList": [child], "NextToken": "n"}, {"IncludeRoot": True})
        reads.add_response("get_catalogs", {"CatalogList": [root]}, {"IncludeRoot": True, "NextToken": "n"})
        reads.add_response("get_catalogs", {"CatalogList": [child]}, {"ParentCatalogId": account, "Recursive": False})
        assert catalog.list_namespaces(ROOT) == [account, "fed"]
        got = {"DatabaseName": "db", "Name": "t"}
        reads.add_response("get_table", {"Table": native}, got)
        reads.add_response("get_table", {"Table": native}, got)
        writes.add_response(
            "update_table", {}, {"DatabaseName": "db", "TableInput": wanted, "VersionId": "7", "SkipArchive": True}
        )
        reads.add_response("get_table", {"Table": {**native, "VersionId": "8"}}, got)
        before = catalog.describe_table(path)
        assert (before.native_id, before.version) == ("2026-01-01T00:00:00+00:00", "7")
        after = TableRecord("aws", path, "s3://l/t2", {"k": "v"}, doc="d")
        assert catalog.update_table(before, after).version == "8"
        reads.add_response("get_table", {"Table": native}, got)
        writes.add_response("delete_table", {}, got)
        catalog.deregister_table(before)
        reads.assert_no_pending_responses()
        writes.assert_no_pending_responses()
