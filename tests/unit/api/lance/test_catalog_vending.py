"""Clients without credentials of their own read and write the tables of catalogs that issue credentials themselves.

Unity is the contract stub, Lake Formation a stub by botocore's service model, and the store is moto behind the enforcing proxy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import lance
import lance.namespace
import lancedb
import pyarrow as pa
import pytest

from federator.audit import seal_pending
from federator.store import audit_log
from federator.vending.vendors import build_vendor
from tests.fixtures.enforcing_s3 import OWNER, ROLE, EnforcingS3, enforcing_s3, table_policy
from tests.fixtures.glue import GlueAccount
from tests.fixtures.index_content import fill, table
from tests.stubs.lake_formation import LakeFormation, lake_formation
from tests.stubs.unity import UnityStub
from tests.unit.api.lance.conftest import CALLER, Service, served

ROWS = pa.table({"id": range(100)})
NAMES = ("orders", "salaries")
DENIED = r"(?i)denied|403|forbidden"


@pytest.fixture
def store(glue_url: str) -> Iterator[EnforcingS3]:
    with enforcing_s3(glue_url) as proxy:
        yield proxy


@pytest.fixture
def bucket(store: EnforcingS3, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("LAKE_KEY", OWNER["access_key_id"])
    monkeypatch.setenv("LAKE_SECRET", OWNER["secret_access_key"])
    name = store.new_bucket()
    for each in NAMES:
        lance.write_dataset(ROWS, f"s3://{name}/{each}.lance", storage_options=store.owner_options)
    return name


@pytest.fixture
def unity(unity_stub: UnityStub, bucket: str, store: EnforcingS3) -> UnityStub:
    """A catalog with both tables, which issues credentials as a real server does through its cloud's STS."""
    world = unity_stub.world
    world.create_schema({"name": "sales", "catalog_name": "main"}, None)
    for name in NAMES:
        declare(unity_stub, name, f"s3://{bucket}/{name}.lance")

    def issue(row: dict[str, Any], operation: str) -> dict[str, Any]:
        assert operation in ("READ", "READ_WRITE")
        session, key_id = store.mint("unity", table_policy(row["storage_location"], writes=operation == "READ_WRITE"))
        keys = {"access_key_id": key_id, "secret_access_key": session.secret, "session_token": session.token}
        return {
            "aws_temp_credentials": keys, "azure_user_delegation_sas": None, "gcp_oauth_token": None,
            "expiration_time": int(session.expires_at * 1000),
        }  # fmt: skip

    world.issues = issue
    return unity_stub


def declare(unity: UnityStub, name: str, location: str) -> None:
    body = {
        "name": name, "catalog_name": "main", "schema_name": "sales", "table_type": "EXTERNAL", "data_source_format": "TEXT",
        "columns": [], "properties": {"table_type": "lance"}, "storage_location": location,
    }  # fmt: skip
    unity.world.create_table(json.dumps(body), None)


@contextmanager
def serving(directory: Path, store: EnforcingS3, source: dict[str, Any], vend: Any = "catalog") -> Iterator[Service]:
    storage = {
        "endpoint": store.url, "allow_http": "true", "region": "us-east-1", "client_max_retries": "1", "client_retry_timeout": "5",
        "access_key_id": "${LAKE_KEY}", "secret_access_key": "${LAKE_SECRET}",
    }  # fmt: skip
    sts = {"sts": {"role_arn": ROLE, "endpoint": store.url}} if "sts" in vend else {}
    with served(directory, {"cat": {**source, "storage": storage, "vend": vend, **sts}}) as running:
        running.crawl("cat")
        yield running


def unity_source(unity: UnityStub, bucket: str) -> dict[str, Any]:
    return {"impl": "unity", "unity": {"endpoint": unity.url, "root": f"s3://{bucket}"}}


def describe(service: Service, caller: str, key: str, **body: Any) -> Any:
    return service.post(f"/v1/table/{key.replace('$', '%24')}/describe", body, caller=caller)


def vendings(service: Service) -> list[dict[str, Any]]:
    seal_pending(service.index)
    events = [json.loads(row.event) for row in audit_log.iter_events(service.index)]
    return [event for event in events if event["kind"] == "credentials_vended"]


def check_clients(service: Service, store: EnforcingS3, bucket: str, namespace: list[str], session: str) -> None:
    """A reader reads its table and no other through pylance and lancedb, and a writer appends to it."""
    scope = "$".join([*namespace, "orders"])
    properties = {"uri": service.url, f"header.{CALLER}": f"viewer {scope}"}
    client = lance.namespace.RestNamespace(**properties)
    assert lance.dataset(namespace_client=client, table_id=[*namespace, "orders"]).count_rows() == 100
    opened = lancedb.connect_namespace("rest", properties).open_table("orders", namespace_path=namespace)
    assert opened.count_rows() == 100
    assert {each.session for each in store.checked if each.key_id} == {session}, "the owner's key never leaves the service"
    given = describe(service, f"viewer {scope}", scope).json()["storage_options"]
    assert OWNER["access_key_id"] not in str(given)
    with pytest.raises(Exception, match=DENIED):
        lance.dataset(f"s3://{bucket}/salaries.lance", storage_options=given)
    assert "salaries" in store.denied(session)[-1].resource, "refused by the policy, not by the client"
    with pytest.raises(Exception, match=DENIED):
        opened.add(ROWS)
    writer = lance.namespace.RestNamespace(**{**properties, f"header.{CALLER}": f"writer {scope}"})
    lance.write_dataset(ROWS, namespace_client=writer, table_id=[*namespace, "orders"], mode="append")
    assert lance.dataset(namespace_client=client, table_id=[*namespace, "orders"]).count_rows() == 200
    assert not store.assumed, "STS of the federator is not asked"


def test_unity_issues_credentials_for_one_table(unity: UnityStub, store: EnforcingS3, bucket: str, tmp_path: Path) -> None:
    with serving(tmp_path, store, unity_source(unity, bucket)) as service:
        check_clients(service, store, bucket, ["cat", "main", "sales"], "unity")
        events = vendings(service)
        assert {(event["detail"]["method"], event["detail"]["issuer"]) for event in events} == {("catalog", "the catalog cat")}
        assert {event["detail"]["access"] for event in events} == {"read", "write"}
        asked = [request for request in unity.seen if "temporary-table-credentials" in request]
        assert len(asked) == 2, "one for reading, one for writing: kept until shortly before they expire"
        given = describe(service, "viewer cat$main$sales$orders", "cat$main$sales$orders").json()["storage_options"]
        assert given["aws_session_token"] == given["session_token"]
        assert given["expires_at_millis"] == str(int(events[0]["detail"]["expires_at"] * 1000))
        assert given["region"] == "us-east-1", "the source's plain options belong to it"
        creator = lance.namespace.RestNamespace(uri=service.url, **{f"header.{CALLER}": "writer cat$main"})
        lance.write_dataset(ROWS, namespace_client=creator, table_id=["cat", "main", "sales", "fresh"], mode="create")
        fresh = f"s3://{bucket}/main/sales/fresh.lance"
        assert lance.dataset(fresh, storage_options=store.owner_options).count_rows() == 100
        assert {each.session for each in store.checked if "fresh" in each.resource and each.key_id} == {"unity"}


def test_a_catalog_that_refuses_is_final_and_says_why(
    unity: UnityStub, store: EnforcingS3, bucket: str, tmp_path: Path
) -> None:
    with serving(tmp_path, store, unity_source(unity, bucket), ["catalog", "sts"]) as service:
        unity.world.denied.add("main.sales")
        # Reading the table is denied, too; the script lets it pass once.
        row = unity.world.tables["main", "sales", "orders"]
        unity.script.append((200, {}, json.dumps(row)))
        description = describe(service, "writer *", "cat$main$sales$orders", vend_credentials=True)
        assert (description.status_code, description.json()["code"]) == (403, 15)
        assert "PERMISSION_DENIED: Access denied." in description.json()["error"]
        assert "storage_options" not in description.json()
        assert not store.assumed, "nothing else is asked after a refusal"
        plain = describe(service, "writer *", "cat$main$sales$orders", vend_credentials=False).json()["storage_options"]
        assert not any("key" in name or "token" in name for name in plain)
        assert vendings(service) == []


def test_where_the_catalog_does_not_vend_the_next_one_does(
    unity: UnityStub, store: EnforcingS3, bucket: str, tmp_path: Path
) -> None:
    lasting = {"aws_temp_credentials": {"access_key_id": "AKIA", "secret_access_key": "lasting-secret", "session_token": None}}
    session = {"aws_temp_credentials": {"access_key_id": "A", "secret_access_key": "lasting-secret", "session_token": "T"}}
    sas = {"azure_user_delegation_sas": {"sas_token": "sig=lasting-secret"}, "expiration_time": 4_000_000_000_000}
    # One caller and table each, since credentials are kept.
    askers = [(role, name) for role in ("viewer", "writer") for name in NAMES]
    responses = (None, {**lasting, "expiration_time": 4_000_000_000_000}, session, sas)
    with serving(tmp_path, store, unity_source(unity, bucket), ["catalog", "sts"]) as service:
        for (role, name), response in zip(askers, responses, strict=True):
            unity.world.issues = None if response is None else lambda *_, response=response: response
            description = describe(service, f"{role} cat", f"cat$main$sales${name}")
            assert "lasting-secret" not in description.text
            assert description.json()["storage_options"]["session_token"] == next(reversed(store.sessions.values())).token
        assert len(store.assumed) == 4
        assert {event["detail"]["method"] for event in vendings(service)} == {"sts"}


def test_without_another_issuer_there_is_nothing(unity: UnityStub, store: EnforcingS3, bucket: str, tmp_path: Path) -> None:
    key = "cat$main$sales$orders"
    with serving(tmp_path, store, unity_source(unity, bucket)) as service:
        built = build_vendor(service.settings.source("cat"))
        assert built is not None
        with closing(built):
            assert built.check() == "unity is asked for each table; what it issues is not tested"
        unity.world.issues = None
        description = describe(service, "writer *", key)
        assert (description.status_code, description.json()["code"]) == (406, 0)
        assert OWNER["secret_access_key"] not in description.text
        # A table that was replaced since the crawl is another one, and may be anywhere.
        unity.world.drop_table("main.sales.orders")
        declare(unity, "orders", f"s3://{bucket}/elsewhere.lance")
        description = describe(service, "writer *", key)
        assert (description.status_code, description.json()["code"]) == (409, 14)


def test_a_catalog_may_limit_credentials_less_exactly(
    unity: UnityStub, store: EnforcingS3, bucket: str, tmp_path: Path
) -> None:
    declare(unity, "wild", f"s3://{bucket}/or*.lance")
    with serving(tmp_path, store, unity_source(unity, bucket)) as service:
        description = describe(service, "admin *", "cat$main$sales$wild")
        assert (description.status_code, description.json()["code"]) == (400, 13)
        # The open-source server limited tokens of Google Cloud Storage by the text that a name begins with.
        fill(service.index, "mem", table("mem", "hr", "beside", location=f"s3a://{bucket}/orders.lance2"))
        refused = describe(service, "viewer cat", "cat$main$sales$orders")
        assert (refused.status_code, refused.json()["code"]) == (403, 15)
        assert "beside" not in refused.text
        assert describe(service, "viewer cat", "cat$main$sales$salaries").status_code == 200
        assert describe(service, "viewer cat,mem$hr", "cat$main$sales$orders").status_code == 200


@pytest.fixture
def formation(store: EnforcingS3, bucket: str) -> Iterator[LakeFormation]:
    """It knows the locations of the tables by the end of their ARN."""

    def issue(request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        location = f"s3://{bucket}/{request['TableArn'].rpartition('/')[2]}.lance"
        session, key_id = store.mint("formation", table_policy(location, writes="INSERT" in request["Permissions"]))
        return 200, {
            "AccessKeyId": key_id, "SecretAccessKey": session.secret, "SessionToken": session.token,
            "Expiration": session.expires_at, "VendedS3Path": [f"{location}/"],
        }  # fmt: skip

    with lake_formation(issue) as stub:
        yield stub


def test_lake_formation_issues_credentials_for_one_table(
    formation: LakeFormation, glue_account: GlueAccount, store: EnforcingS3, bucket: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    glue, account = glue_account.client(), glue_account.account_id
    glue.create_database(DatabaseInput={"Name": "sales"})
    for name in NAMES:
        native = {
            "Name": name, "TableType": "EXTERNAL_TABLE", "Parameters": {"table_type": "lance"},
            "StorageDescriptor": {"Location": f"s3://{bucket}/{name}.lance", "Columns": []},
        }  # fmt: skip
        glue.create_table(DatabaseName="sales", TableInput=native)
    properties = dict(glue_account.properties)
    for name in ("access_key_id", "secret_access_key", "session_token"):
        monkeypatch.setenv(f"GLUE_{name.upper()}", properties[name])
        properties[name] = f"${{GLUE_{name.upper()}}}"
    source = {"impl": "glue", "glue": {**properties, "lake_formation_endpoint": formation.url}}
    key = f"cat${account}$sales$orders"
    with serving(tmp_path, store, source) as service:
        check_clients(service, store, bucket, ["cat", account, "sales"], "formation")
        arn = f"arn:aws:glue:us-east-1:{account}:table/sales/orders"
        assert formation.requests == [
            {"TableArn": arn, "Permissions": ["SELECT"], "DurationSeconds": 3600},
            {"TableArn": arn, "Permissions": ["SELECT", "INSERT", "DELETE"], "DurationSeconds": 3600},
        ]
        formation.issue = lambda _: (400, {"__type": "PermissionTypeMismatchException", "Message": "column permissions exist"})
        description = describe(service, "viewer *", f"cat${account}$sales$salaries")
        assert (description.status_code, description.json()["code"]) == (403, 15)
        assert "column permissions exist" in description.json()["error"]
        formation.issue = lambda _: (200, {
            "AccessKeyId": "A", "SecretAccessKey": "hidden-secret", "SessionToken": "T", "Expiration": 4_000_000_000,
            "VendedS3Path": [f"s3://{bucket}"],
        })  # fmt: skip
        description = describe(service, "viewer *", f"cat${account}$sales$salaries")
        assert (description.status_code, description.json()["code"]) == (409, 14)
        assert "hidden-secret" not in description.text
        assert {event["subject"] for event in vendings(service)} == {key}
