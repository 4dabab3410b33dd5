"""Credentials in the responses of Unity and Lake Formation, and the requests that Lake Formation gets."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    Internal,
    PermissionDenied,
    ServiceUnavailable,
    TableNotFound,
    Throttled,
    Unsupported,
)
from federator.model import TableRecord
from federator_connectors._glue import lake_formation
from federator_connectors._glue.client import Clients
from federator_connectors._glue.settings import GlueSettings
from federator_connectors._unity.credentials import parse_credentials

AWS = {"access_key_id": "A", "secret_access_key": "S", "session_token": "T"}
MILLIS = 1_893_456_000_000
ARN = "arn:aws:glue:eu-1:123456789012:table/sales/orders"
ISSUED = {"AccessKeyId": "A", "SecretAccessKey": "S", "SessionToken": "T", "Expiration": datetime(2030, 1, 1, tzinfo=UTC)}


def record(location: str) -> TableRecord:
    return TableRecord("s", ("main", "sales", "orders"), location, native_id="id")


@pytest.mark.parametrize(
    ("location", "fields", "expected"),
    [
        ("s3://lake/t", {"aws_temp_credentials": AWS}, {"aws_access_key_id": "A", "aws_session_token": "T", "session_token": "T"}),
        ("gs://lake/t", {"gcp_oauth_token": {"oauth_token": "T"}}, {"google_storage_token": "T"}),
        ("abfss://lake@acct.dfs.core.windows.net/t", {"azure_user_delegation_sas": {"sas_token": "?sig=x"}},
         {"azure_storage_sas_token": "sig=x", "sas_token": "sig=x", "account_name": "acct", "azure_storage_account_name": "acct"}),
    ],
)  # fmt: skip
def test_unity_issues_for_each_cloud(location: str, fields: dict[str, Any], expected: dict[str, str]) -> None:
    for more in ({}, {"url": f"{location}/"}):
        issued = parse_credentials({**fields, **more, "expiration_time": MILLIS}, record(location))
        assert expected.items() <= issued.options.items()
        assert issued.expires_at == MILLIS / 1000
    with pytest.raises(ConcurrentModification):
        parse_credentials({**fields, "expiration_time": MILLIS, "url": f"{location}2"}, record(location))
    with pytest.raises(Unsupported, match="no temporary credentials"):
        parse_credentials(fields, record(location))
    for other in ("file:///lake/t", "s3://lake/t" if not location.startswith("s3") else "gs://lake/t"):
        with pytest.raises(Unsupported, match="no temporary credentials"):
            parse_credentials({**fields, "expiration_time": MILLIS}, record(other))


def test_unity_never_gives_keys_that_last() -> None:
    lasting = {"aws_temp_credentials": {**AWS, "session_token": None}, "expiration_time": MILLIS}
    with pytest.raises(Unsupported) as caught:
        parse_credentials(lasting, record("s3://lake/t"))
    assert "'S'" not in str(caught.value)


class StubbedClients(Clients):
    """Clients whose Lake Formation is botocore's stub, which checks requests and responses by the service model."""

    def __init__(self) -> None:
        super().__init__("s", GlueSettings(region="eu-1"))
        make: Any = boto3.client
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
        self._clients["lake_formation"] = make("lakeformation", region_name="eu-1", **keys)
        self.stubber = Stubber(self._clients["lake_formation"])
        self.stubber.activate()


@pytest.fixture(scope="module")
def clients() -> StubbedClients:
    return StubbedClients()


def issue(clients: Clients, location: str = "s3://lake/t", *, writes: bool = False) -> Any:
    path = ("123456789012", "sales", "orders")
    return lake_formation.issue_credentials(clients, "123456789012", path, record(location), writes=writes)


def test_the_request_and_the_response_are_those_of_the_service_model(clients: StubbedClients) -> None:
    for writes, permissions in ((False, ["SELECT"]), (True, ["SELECT", "INSERT", "DELETE"])):
        expected = {"TableArn": ARN, "Permissions": permissions, "DurationSeconds": 3600}
        response = {**ISSUED, "VendedS3Path": ["s3://lake/t/"]}
        clients.stubber.add_response("get_temporary_glue_table_credentials", response, expected)
        issued = issue(clients, writes=writes)
        assert issued.options["aws_session_token"] == issued.options["session_token"] == "T"
        assert issued.expires_at == MILLIS / 1000
    clients.stubber.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("AccessDeniedException", 400, PermissionDenied), ("PermissionTypeMismatchException", 400, PermissionDenied),
        ("EntityNotFoundException", 400, TableNotFound), ("InternalServiceException", 500, ServiceUnavailable),
        ("OperationTimeoutException", 400, ServiceUnavailable), ("ThrottledException", 400, Throttled),
    ],
)  # fmt: skip
def test_errors_of_lake_formation(clients: StubbedClients, code: str, status: int, expected: type[CatalogError]) -> None:
    clients.stubber.add_client_error("get_temporary_glue_table_credentials", code, "refused", http_status_code=status)
    with pytest.raises(expected, match="refused") as caught:
        issue(clients)
    assert type(caught.value) is expected


def test_responses_that_are_not_for_this_table(clients: StubbedClients) -> None:
    for response, error in (
        ({**ISSUED, "VendedS3Path": ["s3://lake"]}, ConcurrentModification),
        ({"AccessKeyId": "A"}, Internal),
    ):
        clients.stubber.add_response("get_temporary_glue_table_credentials", response)
        with pytest.raises(error):
            issue(clients)
    with pytest.raises(Unsupported, match="S3 only"):
        issue(clients, "gs://lake/t")


def test_names_of_tables_in_other_catalogs() -> None:
    nested = lake_formation.table_arn("aws-cn", "cn-1", "123456789012:s3tablescatalog/lake", ("lake", "sales", "orders"))
    assert nested == "arn:aws-cn:glue:cn-1:123456789012:table/s3tablescatalog/lake/sales/orders"
    with pytest.raises(Unsupported, match="has no ARN"):
        lake_formation.table_arn("aws", "eu-1", "metastore", ("metastore", "sales", "orders"))


def test_the_credentials_of_another_metastore_are_not_sent_to_aws() -> None:
    with pytest.raises(Unsupported, match="has no Lake Formation") as caught:
        _ = Clients("s", GlueSettings(endpoint="http://127.0.0.1:1", region="eu-1")).lake_formation
    assert caught.value.hint == "set glue.lake_formation_endpoint"
