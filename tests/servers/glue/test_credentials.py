"""The four ways to authenticate, and their requests."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from botocore.awsrequest import AWSResponse
from botocore.credentials import DeferredRefreshableCredentials
from urllib3 import HTTPResponse

from federator.connector import CatalogError, ConfigError, InvalidInput, ServiceUnavailable, Unauthenticated
from federator.connector.operation import permission
from federator.demo.servers.process import Server
from federator.model import ROOT, NamespaceRecord, TableRecord
from federator.vending.catalog import CatalogVendor
from federator_connectors._glue.catalog import GlueCatalog
from federator_connectors._glue.client import Clients
from federator_connectors.glue import CONNECTOR
from tests.adversary.http_proxy import HttpProxy, Request, Response
from tests.fixtures.glue import REGION, STATIC, GlueAccount, account, principals
from tests.unit.api.lance.conftest import served

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
    with CONNECTOR.open("aws", CONNECTOR.parse_settings(properties)) as catalog:
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


def test_a_profile_of_the_shared_files(glue_account: GlueAccount, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keys = "\n".join(f"{name} = {value}" for name, value in glue_account.credentials.items())
    (tmp_path / "credentials").write_text(f"[lake]\n{keys}\n")
    (tmp_path / "config").write_text(f"[profile lake]\nregion = {REGION}\n")
    monkeypatch.setenv("AWS_PROFILE", "lake")
    assert accounts({"endpoint": glue_account.url}) == [glue_account.account_id]
    monkeypatch.setenv("AWS_PROFILE", "missing")
    with pytest.raises(InvalidInput, match="missing"):
        accounts({"endpoint": glue_account.url})


def test_the_settings_win_over_the_environment(glue_account: GlueAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ACCESS_KEY_ID", "AKIAOTHER"), ("SECRET_ACCESS_KEY", "other"), ("SESSION_TOKEN", "other")):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert accounts(glue_account.properties) == [glue_account.account_id]


def test_nothing_makes_a_write_be_sent_twice(
    glue_account: GlueAccount, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "7")
    monkeypatch.setenv("AWS_RETRY_MODE", "legacy")
    (tmp_path / "config").write_text("[default]\nmax_attempts = 9\nretry_mode = adaptive\n")
    settings = CONNECTOR.parse_settings(glue_account.properties)
    with GlueCatalog("aws", settings) as catalog:
        clients: Any = (catalog._clients.reads, catalog._clients.writes)
        reads, writes = (client.meta.config.retries for client in clients)
        assert (writes["total_max_attempts"], writes["mode"]) == (1, "standard")
        assert (reads["total_max_attempts"], reads["mode"]) == (4, "adaptive")
        sent: list[str] = []

        def unavailable(request: Any, **_: Any) -> Any:
            sent.append(request.headers["X-Amz-Target"].decode().rpartition(".")[2])
            return AWSResponse(request.url, 503, {}, HTTPResponse(io.BytesIO(), preload_content=False))

        catalog._clients.writes.meta.events.register("before-send.glue", unavailable)
        glue_account.client().create_database(DatabaseInput={"Name": "db"})
        table = TableRecord("aws", (glue_account.account_id, "db", "t"), "s3://l/t")
        with pytest.raises(ServiceUnavailable):
            catalog.declare_table(table)
        lance = {"TableType": "EXTERNAL_TABLE", "Parameters": {"table_type": "lance"}}
        glue_account.client().create_table(DatabaseName="db", TableInput={"Name": "t", **lance})
        described = catalog.describe_table(table.path)
        attempts = [
            lambda: catalog.update_table(described, replace(described, doc="d")),
            lambda: catalog.deregister_table(described),
            lambda: catalog.create_namespace(NamespaceRecord("aws", (glue_account.account_id, "new"))),
            lambda: catalog.create_namespace(NamespaceRecord("aws", ("lake",))),
        ]
        for write in attempts:
            with pytest.raises(ServiceUnavailable):
                write()
        assert sent == ["CreateTable", "UpdateTable", "DeleteTable", "CreateDatabase", "CreateCatalog"]


def test_an_assumed_role_is_renewed_before_it_expires(glue_account: GlueAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    plain = Clients._create_sts_client

    def spied(clients: Clients, session: Any, region: str | None) -> Any:
        made = plain(clients, session, region)

        def note(params: dict[str, Any], **_: Any) -> None:
            asked.append({**params, "region": region})
            # The session that STS begins has its time.
            clock[0] = datetime.now(UTC)

        made.meta.events.register("provide-client-params.sts.AssumeRole", note)
        return made

    monkeypatch.setattr(Clients, "_create_sts_client", spied)
    clock = [datetime.now(UTC)]
    role = f"arn:aws:iam::{glue_account.account_id}:role/reader"
    settings = CONNECTOR.parse_settings({
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


def test_a_role_whose_renewal_fails_is_an_error_and_not_an_empty_catalog(glue_account: GlueAccount) -> None:
    clock = [datetime.now(UTC)]
    settings = CONNECTOR.parse_settings({
        **glue_account.properties, "assume_role_arn": f"arn:aws:iam::{glue_account.account_id}:role/reader",
    })  # fmt: skip
    with GlueCatalog("aws", settings, Clients("aws", settings, now=lambda: clock[0])) as catalog:
        assert catalog.list_namespaces(ROOT) == [glue_account.account_id]
        object.__setattr__(settings, "sts_endpoint", "http://127.0.0.1:9")
        clock[0] += timedelta(seconds=3500)
        with pytest.raises(ServiceUnavailable):
            catalog.list_namespaces(ROOT)


class SlowSts(HttpProxy):
    """An STS that answers once ``may_answer`` is set, with ``refusal`` if that is set."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.asked = threading.Event()
        self.may_answer = threading.Event()
        self.refusal: Response | None = None
        self.requests = 0

    def forward(self, request: Request, target: tuple[str, int]) -> Response:
        self.requests += 1
        self.asked.set()
        assert self.may_answer.wait(60)
        return self.refusal or super().forward(request, target)


DENIAL = Response(
    403, {"Content-Type": "text/xml"},
    b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>",
)  # fmt: skip


@pytest.fixture
def slow_sts(glue_account: GlueAccount) -> Iterator[SlowSts]:
    with SlowSts(glue_account.url) as sts:
        yield sts
        sts.may_answer.set()


def assuming(account: GlueAccount, sts: SlowSts, **properties: str) -> GlueCatalog:
    role = {"assume_role_arn": f"arn:aws:iam::{account.account_id}:role/reader", "sts_endpoint": sts.url}
    settings = CONNECTOR.parse_settings({**account.properties, **role, **properties})
    opened = CONNECTOR.open(f"aws-{sts.port}", settings)
    assert isinstance(opened, GlueCatalog)
    return opened


class ExpiringKeys(HttpProxy):
    """A Glue for which access keys expire."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.expired: set[str] = set()

    def forward(self, request: Request, target: tuple[str, int]) -> Response:
        if any(f"Credential={key}/" in value for _, value in request.headers for key in self.expired):
            body = b'{"__type": "ExpiredTokenException", "message": "The security token included in the request is expired"}'
            return Response(400, {"Content-Type": "application/x-amz-json-1.1"}, body)
        return super().forward(request, target)


class Keys:
    """Access keys of one account, in files: the shared one of AWS and one for each secret. ``rotate`` issues new ones."""

    def __init__(self, url: str, directory: Path) -> None:
        self._account, self._directory = account(url), directory
        self.write()

    def write(self) -> None:
        """Write the current keys."""
        lines = [f"{name} = {value}" for name, value in self._account.credentials.items()]
        (self._directory / "credentials").write_text("\n".join(["[default]", *lines]))
        for name, value in self._account.credentials.items():
            (self._directory / name).write_text(value)

    def rotate(self) -> None:
        self._account = account(self._account.url, self._account.account_id)
        self.write()

    @property
    def current(self) -> str:
        return self._account.credentials["aws_access_key_id"]

    @property
    def account_id(self) -> str:
        return self._account.account_id

    @property
    def references(self) -> dict[str, str]:
        """Settings of a source that read the secrets from their files."""
        return {name.removeprefix("aws_"): f"file:{self._directory / name}" for name in self._account.credentials}


@pytest.mark.parametrize("configured", [True, False], ids=["secret files", "the shared file of AWS"])
def test_a_running_service_uses_rotated_credentials_after_old_ones_expired(
    glue_url: str, tmp_path: Path, configured: bool
) -> None:
    keys = Keys(glue_url, tmp_path)
    with ExpiringKeys(glue_url) as glue:
        source = {"impl": "glue", "endpoint": glue.url, "sts_endpoint": glue_url, "region": REGION}
        source |= keys.references if configured else {}
        with served(tmp_path, {"aws": source}, bare=True) as service:
            vendor = CatalogVendor(service.settings.source("aws"))

            def create(name: str) -> requests.Response:
                return requests.post(f"{service.url}/v1/namespace/aws%24{keys.account_id}%24{name}/create", json={}, timeout=60)

            assert create("one").ok
            vendor.check()
            glue.expired.add(keys.current)
            refused = create("two")
            assert (refused.status_code, refused.json()["code"]) == (403, 15)
            assert "ExpiredTokenException" in refused.json()["error"]
            assert refused.json()["detail"] == "check keys, token and clock"
            with pytest.raises(Unauthenticated):
                vendor.check()
            # The refusals have made the service forget the credentials, so that it needs no restart.
            keys.rotate()
            assert create("three").ok
            vendor.check()
            vendor.close()


def test_nobody_waits_for_a_slow_sts_but_callers_that_need_its_role(glue_account: GlueAccount, slow_sts: SlowSts) -> None:
    waiting, other = assuming(glue_account, slow_sts), CONNECTOR.open("own", CONNECTOR.parse_settings(glue_account.properties))
    with ThreadPoolExecutor(3) as threads:
        listing = threads.submit(waiting.list_namespaces, ROOT)
        assert slow_sts.asked.wait(30)
        try:
            assert threads.submit(other.list_namespaces, ROOT).result(30) == [glue_account.account_id]
            threads.submit(waiting.close).result(30)
            assert not listing.done()
        finally:
            slow_sts.may_answer.set()
        assert listing.result(30) == [glue_account.account_id]
    waiting.close()
    other.close()


@pytest.mark.parametrize("refusal", [None, DENIAL])
def test_callers_that_wait_for_sts_share_one_request(
    glue_account: GlueAccount, slow_sts: SlowSts, monkeypatch: pytest.MonkeyPatch, refusal: Response | None
) -> None:
    callers = 6
    threads_that_ask: set[int] = set()
    all_ask = threading.Event()
    plain = DeferredRefreshableCredentials.refresh_needed

    def counted(credentials: Any, refresh_in: int | None = None) -> bool:
        threads_that_ask.add(threading.get_ident())
        if len(threads_that_ask) == callers:
            all_ask.set()
        return plain(credentials, refresh_in)

    monkeypatch.setattr(DeferredRefreshableCredentials, "refresh_needed", counted)
    slow_sts.refusal = refusal
    # Callers that wait for credentials take no connection to Glue.
    one_connection = {"client.pool-size": "1", "catalog_id": glue_account.account_id}
    with assuming(glue_account, slow_sts, **one_connection) as catalog, ThreadPoolExecutor(callers) as threads:
        pings = [threads.submit(catalog.ping) for _ in range(callers)]
        assert all_ask.wait(30)
        slow_sts.may_answer.set()
        expected = set() if refusal is None else {Unauthenticated}
        assert {type(error) for ping in pings if (error := ping.exception(30))} == expected
        assert slow_sts.requests == 1
        # A refusal is not kept: the next caller asks again.
        slow_sts.refusal = None
        catalog.ping()
        assert slow_sts.requests == (1 if refusal is None else 2)


def test_refusals_of_sts_do_not_count_as_missing_responses_of_glue(glue_account: GlueAccount, slow_sts: SlowSts) -> None:
    slow_sts.may_answer.set()
    slow_sts.refusal = DENIAL
    with assuming(glue_account, slow_sts) as catalog:
        for _ in range(8):
            with pytest.raises(Unauthenticated, match="AssumeRole"):
                catalog.list_namespaces(ROOT)


def test_a_write_that_may_no_longer_be_made_is_not_sent_after_waiting_for_sts(
    glue_account: GlueAccount, slow_sts: SlowSts
) -> None:
    ended = threading.Event()

    def require() -> None:
        if ended.is_set():
            raise ServiceUnavailable("the lease has ended")

    catalog = assuming(glue_account, slow_sts, catalog_id=glue_account.account_id)

    def create() -> None:
        with permission(require):
            catalog.create_namespace(NamespaceRecord("aws", (glue_account.account_id, "late")))

    with ThreadPoolExecutor(1) as threads:
        creating = threads.submit(create)
        assert slow_sts.asked.wait(30)
        ended.set()
        slow_sts.may_answer.set()
        with pytest.raises(ServiceUnavailable, match="the lease has ended"):
            creating.result(30)
    assert glue_account.client().get_databases()["DatabaseList"] == []
    catalog.close()


def test_a_role_that_is_denied(glue_throwaway: Server) -> None:
    url = glue_throwaway.uri
    (limited,) = principals(url, "glue:*")
    role = {**limited, "assume_role_arn": "arn:aws:iam::123456789012:role/reader"}
    with pytest.raises(Unauthenticated, match=r"access denied .*sts:AssumeRole"):
        accounts(role)


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
        CONNECTOR.parse_settings(properties)


def test_secrets_are_references_and_never_shown(tmp_path: Path) -> None:
    for key in ("access_key_id", "secret_access_key", "session_token", "storage.aws_secret_access_key"):
        with pytest.raises(ConfigError, match=key):
            CONNECTOR.settings_type.check_references("glue", {f"glue.{key}": "clear"}, where="")
    (tmp_path / "key").write_text("hidden-value\n")
    settings = CONNECTOR.parse_settings({"access_key_id": "hidden-id", "secret_access_key": f"file:{tmp_path / 'key'}"})
    assert settings.secret_access_key == "hidden-value"
    assert settings.assume_role_timeout_sec == 3600
    assert "hidden" not in repr(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings
