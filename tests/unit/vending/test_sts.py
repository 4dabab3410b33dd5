"""Requests to STS, by the service model of botocore, and the settings they come from."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError
from hypothesis import given
from hypothesis import strategies as st

from federator.connector import (
    CatalogError,
    ConfigError,
    Internal,
    InvalidInput,
    PermissionDenied,
    ServiceUnavailable,
    Throttled,
)
from federator.model import TableRecord
from federator.settings import SourceSettings, parse_settings
from federator.vending import Access, SourceVendor, TableGrant
from federator.vending.sts import StsVendor, session_name
from federator.vending.vendors import build_vendor

ROLE = "arn:aws:iam::123456789012:role/tables"
STORAGE = {"access_key_id": "${TEST_VEND_KEY}", "secret_access_key": "${TEST_VEND_KEY}", "region": "eu-1"}
MODEL: Any = botocore.session.Session().get_service_model("sts").operation_model("AssumeRole").input_shape


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_VEND_KEY", "long-lived")


def source(storage: dict[str, str] = STORAGE, **more: Any) -> SourceSettings:
    keys = {"vend": "sts", "sts": {"role_arn": ROLE}, **more}
    raw = {"impl": "dir", "root": "s3://lake", "storage": storage, **keys}
    return parse_settings({"sources": {"s": raw}}, Path("f.toml")).sources["s"]


def vendor(**more: Any) -> StsVendor:
    built = build_vendor(source(**more))
    assert built is not None
    (only,) = built.vendors
    assert isinstance(only, StsVendor)
    return only


def grant(location: str = "s3://lake/t.lance", principal: str = "token:ci", **properties: str) -> TableGrant:
    return TableGrant("s", ("s", "t"), TableRecord("s", ("t",), location, properties), Access.READ, principal)


class FakeClient:
    """Takes the place of boto3's client of STS: notes the request, and answers or raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.requests: list[dict[str, Any]] = []
        self.error = error

    def assume_role(self, **request: Any) -> Any:
        self.requests.append(request)
        if self.error is not None:
            raise self.error
        expires = datetime(2030, 1, 1, tzinfo=UTC)
        return {"Credentials": {"AccessKeyId": "A", "SecretAccessKey": "S", "SessionToken": "T", "Expiration": expires}}


def conforms(request: dict[str, Any]) -> None:
    """Check a request against names, lengths, ranges and patterns of the service model."""
    assert request.keys() <= MODEL.members.keys()
    assert set(MODEL.required_members) <= request.keys()
    for name, value in request.items():
        limits = MODEL.members[name].metadata
        size = value if isinstance(value, int) else len(value)
        assert limits.get("min", 0) <= size <= limits.get("max", 1 << 30), name
        if "pattern" in limits:
            assert re.fullmatch(limits["pattern"].replace(r"\u0020-\u00FF", " -\xff"), value), name


@given(st.text(max_size=80), st.sampled_from(["token:", "oidc:", ""]))
def test_every_principal_has_a_session_name(name: str, kind: str) -> None:
    conforms({"RoleArn": ROLE, "RoleSessionName": session_name(kind + name)})


def test_session_names_are_readable_and_different() -> None:
    assert session_name("token:ci") == "token=ci"
    assert session_name("oidc:ann@example.com") == "oidc=ann@example.com"
    names = ["a", "token:ä", "token:ö", "token:a b", "token:a-b", "x" * 64, "x" * 65, "x" * 66, "a:b:c", "a=b:c"]
    assert len({session_name(name) for name in names}) == len(names)


@pytest.mark.parametrize(("named", "partition"), [("aws-cn", "aws-cn"), ("aws", "aws"), ("minio", "aws")])
def test_buckets_have_a_partition_of_aws(named: str, partition: str) -> None:
    # MinIO refuses a policy whose resources are arn:minio:s3:::… (make interop CLIENTS=minio).
    built, client = vendor(sts={"role_arn": f"arn:{named}:iam::0:role/lance"}), FakeClient()
    built._client = client
    built.issue(grant())
    assert f"arn:{partition}:s3:::lake/t.lance/*" in client.requests[0]["Policy"]


def test_the_request_is_that_of_the_service_model() -> None:
    sts = {"role_arn": ROLE, "external_id": "agreed:1", "duration": "15m"}
    built, client = vendor(sts=sts), FakeClient()
    built._client = client
    issued = built.issue(grant())
    built.check()
    for request in client.requests:
        conforms(request)
    first, check = client.requests
    assert (first["RoleArn"], first["RoleSessionName"], first["ExternalId"]) == (ROLE, "token=ci", "agreed:1")
    assert first["DurationSeconds"] == 900
    assert '"Deny"' in check["Policy"]
    assert "Allow" not in check["Policy"]
    given_options = issued.storage_options({"region": "eu-2", "aws_region": "eu-3", "skip_signature": "true", "timeout": "5s"})
    assert given_options == {
        "access_key_id": "A", "aws_access_key_id": "A", "secret_access_key": "S", "aws_secret_access_key": "S", "session_token": "T",
        "aws_session_token": "T", "region": "eu-1", "aws_region": "eu-1", "timeout": "5s", "expires_at_millis": "1893456000000",
    }  # fmt: skip
    assert "'S'" not in repr(issued)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (("AccessDenied", 403), PermissionDenied), (("InvalidClientTokenId", 403), PermissionDenied), (("Throttling", 400), Throttled),
        (("PackedPolicyTooLarge", 400), InvalidInput), (("InternalFailure", 500), ServiceUnavailable),
        (("ValidationError", 400), Internal), (ConnectTimeoutError(endpoint_url="https://sts"), ServiceUnavailable),
        (NoCredentialsError(), Internal),
    ],
)  # fmt: skip
def test_errors_of_sts(error: Any, expected: type[CatalogError]) -> None:
    if isinstance(error, tuple):
        code, status = error
        answer: Any = {"Error": {"Code": code, "Message": "refused"}, "ResponseMetadata": {"HTTPStatusCode": status}}
        error = ClientError(answer, "AssumeRole")
    built = vendor()
    built._client = FakeClient(error)
    with pytest.raises(expected) as caught:
        built.issue(grant())
    assert type(caught.value) is expected
    assert str(caught.value).startswith(f"s: assuming {ROLE}: ")


def test_credentials_of_the_machine_and_another_store_are_not_sent_to_aws() -> None:
    with pytest.raises(ConfigError, match="has no credentials that could assume"):
        vendor(storage={"region": "eu-1"}).issue(grant())
    with pytest.raises(ConfigError, match=r"storage\.endpoint is set"):
        vendor(storage={**STORAGE, "endpoint": "http://minio:9000"}).issue(grant())
    own = vendor(storage={**STORAGE, "endpoint": "http://minio:9000"}, sts={"role_arn": ROLE, "endpoint": "http://minio:9000"})
    assert own._build_client().meta.endpoint_url == "http://minio:9000"
    assert vendor()._build_client().meta.endpoint_url == "https://sts.eu-1.amazonaws.com"


def test_a_hanging_sts_does_not_take_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("federator.vending.vendors._WAIT_SECONDS", 0.05)
    only = vendor()
    only._client = FakeClient()
    built = SourceVendor("s", [only])
    for _ in range(8):
        assert built._calls.acquire(timeout=1)
    with pytest.raises(ServiceUnavailable, match="does not respond"):
        built.issue(grant())
    built._calls.release()
    built.issue(grant())


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"sts": None}, "need each other"), ({"vend": "none"}, "need each other"), ({"vend": "always"}, "'azure' or 'static'"),
        ({"sts": {"role_arn": "tables"}}, "role_arn"), ({"sts": {"role_arn": ROLE, "duration": "1m"}}, "15m to 12h"),
        ({"sts": {"role_arn": ROLE, "endpoint": "https://u:p@sts"}}, "without a password"),
        ({"vend_credentials": True}, "vend_credentials: replaced by vend"),
    ],
)  # fmt: skip
def test_settings_that_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        source(**{key: value for key, value in keys.items() if value is not None} if keys != {"sts": None} else {"sts": None})


def test_the_old_key_names_its_successor() -> None:
    with pytest.raises(ConfigError) as caught:
        source(vend_credentials=True)
    assert caught.value.hint is not None
    assert 'vend = "static"' in caught.value.hint


def test_a_variable_without_an_arn_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_ROLE", "tables")
    with pytest.raises(ConfigError, match="'tables' is not the ARN of a role"):
        _ = vendor(sts={"role_arn": "${LANCE_ROLE}"}).role_arn
