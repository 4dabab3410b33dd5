"""Options for opening a table: schemes, endpoints, and only configured credentials."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from federator.connector import ConnectorSettings, PermissionDenied, SourceSpec
from federator.data import PrincipalPool, TableHandle, TableProcessPool
from federator.lance.opening import digest_access, lacks_credentials, name_store, opening_options
from federator.pipeline.verify import InspectorProcess
from tests.fixtures.data import data_limits
from tests.fixtures.network import METADATA_SERVICE

UNSIGNED = {"skip_signature": "true", "access_key_id": "anonymous", "secret_access_key": "anonymous"}
KEYS = {"aws_access_key_id": "AKIA", "AWS_SECRET_ACCESS_KEY": "s"}
ACCOUNT = "abfss://c@{}.dfs.core.windows.net/t.lance"


def options(
    storage: dict[str, str], location: str = "s3://b/t.lance", *, named: str | None = None, **more: str
) -> dict[str, str]:
    properties = {f"storage.{key}": value for key, value in storage.items()}
    settings = ConnectorSettings.from_properties("x", properties | more)
    return opening_options(settings, location, {"aws_endpoint": named} if named else {})


def test_without_complete_credentials_a_table_is_opened_anonymously() -> None:
    assert options({"region": "eu"}) == {"region": "eu", **UNSIGNED}
    assert options({"access_key_id": "AKIA", "session_token": "t"}) == {"session_token": "t", **UNSIGNED}
    assert options({"aws_skip_signature": "false"}) == UNSIGNED
    assert options({}, "gs://b/t.lance") == {"skip_signature": "true"}
    assert options({"account_name": "a"}, "az://c/t.lance") == {"account_name": "a", "skip_signature": "true"}
    assert options({"region": "eu"}, "/lake/t.lance") == {"region": "eu"}


def test_own_credentials_are_used_and_those_of_the_machine_if_the_source_says_so() -> None:
    assert options(KEYS) == KEYS
    assert options({"region": "eu"}, ambient_credentials="true") == {"region": "eu"}
    assert options({"google_service_account": "k"}, "gs://b/t.lance") == {"google_service_account": "k"}
    assert options({"azure_storage_sas_token": "k"}, "az://c/t") == {"azure_storage_sas_token": "k"}


def test_a_tables_endpoint_takes_the_credentials_away_unless_the_source_allows_it() -> None:
    storage = {**KEYS, "endpoint": "http://own", "connection_string": "x"}
    assert options(storage, named="http://evil") == {"endpoint": "http://own", **UNSIGNED}
    assert options(storage, named="http://evil", ambient_credentials="true") == {"endpoint": "http://own", **UNSIGNED}
    assert options(storage, named="http://own/") == {**storage, "endpoint": "http://own/"}
    assert options(storage, named="http://other", endpoints="http://other")["endpoint"] == "http://other"


def test_another_azure_account_gets_no_credentials() -> None:
    storage = {"account_name": "mine", "sas_token": "secret"}
    assert options(storage, ACCOUNT.format("mine")) == storage
    assert options(storage, ACCOUNT.format("evil")) == {"account_name": "mine", "skip_signature": "true"}
    assert options(storage, ACCOUNT.format("evil"), endpoints="evil.dfs.core.windows.net") == storage
    assert options({"sas_token": "secret"}, ACCOUNT.format("any")) == {"sas_token": "secret"}


@pytest.mark.parametrize("location", ["memory://t", "oss://b/t", "hf://datasets/t"])
def test_other_schemes_are_refused_unless_the_source_allows_them(location: str) -> None:
    with pytest.raises(PermissionDenied):
        options({}, location)
    scheme = location.partition(":")[0]
    assert options({}, location, schemes=f"s3, {scheme}") == {}
    with pytest.raises(PermissionDenied):
        options({}, "/lake/t.lance", schemes="s3")


def test_a_source_that_opens_anonymously_by_default_is_known() -> None:
    def lacks(**properties: str) -> bool:
        settings = ConnectorSettings.from_properties("x", properties)
        return lacks_credentials(settings, settings.root)

    assert lacks(root="s3a://lake")
    assert not lacks(root="s3://lake", ambient_credentials="true")
    assert not lacks(root="s3://lake", **{"storage.skip_signature": "true"})
    assert not lacks(root="s3://lake", **{f"storage.{key}": value for key, value in KEYS.items()})
    assert not lacks(root="/lake")
    assert not lacks()


@pytest.fixture
def metadata_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Requests to a listener that stands for the metadata services of the clouds, by their environment variables."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            self.send_error(404)

        do_PUT = do_GET

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}"
        for name, text in METADATA_SERVICE.items():
            monkeypatch.setenv(name, text.format(address))
        yield requests
        server.shutdown()


STORES = {
    "s3://b/t.lance": {"aws_endpoint": "http://127.0.0.1:9", "aws_region": "us-east-1"},
    "gs://b/t.lance": {"google_base_url": "http://127.0.0.1:9"},
    "az://c/t.lance": {"azure_endpoint": "http://127.0.0.1:9", "account_name": "a"},
}
CLIENT = {"allow_http": "true", "client_max_retries": "0", "client_retry_timeout": "1"}


@pytest.mark.parametrize("location", STORES)
def test_no_metadata_service_is_asked_for_credentials(metadata_service: list[str], location: str) -> None:
    storage = {f"storage.{key}": value for key, value in {**STORES[location], **CLIENT}.items()}
    with InspectorProcess(SourceSpec("lake", "federator.testing:CONNECTOR", storage), 60.0) as inspector:
        assert inspector.inspect(location).state != "valid"
        assert metadata_service == []
        denied = inspector.inspect("oss://b/t.lance")
        assert (denied.state, "oss" in str(denied.message)) == ("denied", True)
    settings = ConnectorSettings.from_properties("x", {**storage, "storage.secret_access_key": "s"})
    pool = TableProcessPool(data_limits(max_rows=10, max_seconds=60, max_bytes=1000), 1)
    try:
        PrincipalPool(pool, "").run(
            "inspect", TableHandle(location, opening_options(settings, location, {"endpoint": "http://evil"}))
        )
    finally:
        pool.close()
    assert metadata_service == []
    ambient = SourceSpec("lake", "federator.testing:CONNECTOR", {**storage, "ambient_credentials": "true"})
    with InspectorProcess(ambient, 60.0) as inspector:
        inspector.inspect(location)
    assert metadata_service, "the listener stands for the service"


@pytest.mark.parametrize(
    ("storage", "store"),
    [
        ({}, ""),
        ({"region": "us-west-2"}, ""),
        ({"endpoint": "https://s3.amazonaws.com"}, ""),
        ({"endpoint": "https://s3.us-west-2.amazonaws.com:443"}, ""),
        ({"endpoint": "https://bucket.s3-fips.dualstack.us-east-1.amazonaws.com"}, ""),
        ({"endpoint": "https://bucket.vpce-1a2b.s3.us-east-1.vpce.amazonaws.com"}, ""),
        ({"endpoint": "https://s3.us-gov-west-1.amazonaws.com"}, "us-gov-"),
        ({"region": "us-gov-west-1"}, "us-gov-"),
        ({"endpoint": "https://s3.cn-north-1.amazonaws.com.cn"}, "cn-"),
        ({"endpoint": "http://minio-1.us-east-1.elb.amazonaws.com"}, "minio-1.us-east-1.elb.amazonaws.com"),
        ({"endpoint": "http://s3-minio.us-east-1.elb.amazonaws.com"}, "s3-minio.us-east-1.elb.amazonaws.com"),
        ({"endpoint": "https://ec2-1-2-3-4.compute-1.amazonaws.com:443"}, "ec2-1-2-3-4.compute-1.amazonaws.com"),
        ({"aws_endpoint_url_s3": "http://minio:9000"}, "minio:9000"),
        ({"endpoint": "http://user:password@MinIO:80/"}, "minio"),
    ],
)
def test_the_name_of_a_store(storage: dict[str, str], store: str) -> None:
    """Buckets have one owner in each cloud of AWS. Any other host is a store of its own, also one in AWS's domain."""
    assert name_store(storage) == store


@pytest.mark.parametrize(
    ("changes", "is_equal"),
    [
        ({}, True), ({"storage.aws_region": "eu-1", "storage.region": None}, True), ({"storage.timeout": "9s"}, True),
        ({"storage.endpoint": "http://store:9000/"}, True), ({"storage.endpoint": "http://other:9000"}, False),
        ({"storage.region": "eu-2"}, False), ({"storage.secret_access_key": "${OTHER}"}, False),
        ({"storage.secret_access_key": None}, False), ({"storage.skip_signature": "true"}, False),
        ({"storage.x-tenant": "two", "plain": "x-tenant"}, False), ({"ambient_credentials": "true"}, False),
        ({"schemes": "s3"}, False), ({"endpoints": "http://more:9000"}, False), ({"storage.user_agent": "allowed"}, False),
        ({"storage.allow_invalid_certificates": "true"}, False), ({"storage.allow_http": "true"}, False),
    ],
)  # fmt: skip
def test_sources_have_one_access_if_they_open_the_same(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, str | None], is_equal: bool
) -> None:
    """The secrets have one value: only their references are compared, so that a renewed one changes nothing."""
    base = {
        "storage.endpoint": "http://store:9000", "storage.region": "eu-1", "storage.access_key_id": "${KEY}",
        "storage.secret_access_key": "${SECRET}",
    }  # fmt: skip

    def digest(properties: dict[str, str], value: str) -> str:
        for name in ("KEY", "SECRET", "OTHER"):
            monkeypatch.setenv(name, value)
        settings = ConnectorSettings.from_properties("dir", properties)
        references = {key.removeprefix("storage."): text for key, text in properties.items()}
        return digest_access(settings, references, name_store(settings.storage))

    changed = {key: text for key, text in (base | changes).items() if text is not None}
    assert (digest(changed, "renewed secret") == digest(base, "first secret")) is is_equal
