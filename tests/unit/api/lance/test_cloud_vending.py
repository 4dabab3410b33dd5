"""Clients without credentials of their own read and write exactly one table in Google Cloud Storage and in Azure.

google-auth, azure-identity and azure-storage-blob talk to the stand-ins of ``tests.fixtures.gcs_store`` and ``azure_store``, and so
does Lance.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import lance
import lance.namespace
import lancedb
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from federator.audit import seal_pending
from federator.store import audit_log
from federator.vending import Vendors
from federator.vending.vendors import build_vendor
from tests.fixtures.azure_store import AzureStore
from tests.fixtures.certificates import make
from tests.fixtures.cloud_stores import CloudStore, running
from tests.fixtures.gcs_store import GcsStore
from tests.fixtures.index_content import fill, table
from tests.unit.api.lance.conftest import CALLER, Service, served

ROWS = pa.table({"id": range(100)})
NAMES = ("orders", "orders2", "it's")
ACCOUNT = "federator@lake.iam.gserviceaccount.com"
DENIED = r"403|(?i:forbidden|permission|denied)"
CLIENT = {"client_max_retries": "1", "client_retry_timeout": "5"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of one table, which every table here has."""
    directory = tmp_path_factory.mktemp("files") / "table.lance"
    lance.write_dataset(ROWS, str(directory), max_rows_per_file=10)
    return directory


@pytest.fixture(scope="module", params=["gcs", "azure"])
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudStore]:
    """A store and its issuer, for which the environment of this process has the credentials."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "gcs":
            key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            gcs = GcsStore(public_key=key.public_key())
            with running(gcs):
                pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
                info = {"type": "service_account", "client_email": ACCOUNT, "private_key": pem, "token_uri": f"{gcs.url}/oauth"}
                patch.setenv("LAKE_KEY", json.dumps(info))
                patch.setattr("google.auth.downscoped._STS_TOKEN_URL_PATTERN", f"{gcs.url}/v1/token")
                yield gcs
            return
        certificates, azure = make(tmp_path_factory.mktemp("certificates")), AzureStore()
        patch.setenv("REQUESTS_CA_BUNDLE", certificates.ca)
        patch.setenv("LAKE_KEY", azure.secret)
        with running(azure, certificates.server):
            yield azure


@pytest.fixture(scope="module")
def shared(cloud: CloudStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    if isinstance(cloud, GcsStore):
        storage = {"google_base_url": cloud.url, "allow_http": "true", "google_service_account_key": "${LAKE_KEY}"}
    else:
        storage = {
            "account_name": "acct", "azure_storage_endpoint": f"{cloud.url}/acct", "allow_invalid_certificates": "true",
            "azure_storage_authority_host": cloud.url, "azure_storage_tenant_id": "tenant",
            "azure_storage_client_id": "federator", "azure_storage_client_secret": "${LAKE_KEY}",
        }  # fmt: skip
    scheme, method = ("gs", "gcs") if isinstance(cloud, GcsStore) else ("az", "azure")
    source = {"impl": "dir", "root": f"{scheme}://{cloud.bucket}", "storage": {**storage, **CLIENT}, "vend": method}
    with served(tmp_path_factory.mktemp("served"), {"cloud": source}) as service:
        yield service


@pytest.fixture
def store(cloud: CloudStore, files: Path) -> Iterator[CloudStore]:
    """The store as at first: nothing was issued or asked for."""
    cloud.objects.clear()
    for name in NAMES:
        cloud.upload(files, f"sales/{name}.lance")
    for noted in (cloud.issued, cloud.checked, cloud.used):
        noted.clear()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("lifetime", "delay", "status", "secret"):
            if hasattr(cloud, name):
                patch.setattr(cloud, name, getattr(cloud, name))
        yield cloud


@pytest.fixture
def service(shared: Service, store: CloudStore) -> Service:
    """The service as at first: it keeps no credentials, and its index has the tables."""
    shared.app.state.vendors = Vendors(shared.settings)
    scheme = "gs" if isinstance(store, GcsStore) else "az"
    rows = [table("cloud", name, location=f"{scheme}://{store.bucket}/sales/{name}.lance") for name in NAMES]
    fill(shared.index, "cloud", *rows)
    return shared


def describe(service: Service, caller: str, name: str = "orders", **body: Any) -> Any:
    return service.post(f"/v1/table/cloud%24{name}/describe", body, caller=caller)


def options(service: Service, caller: str, name: str = "orders") -> dict[str, str]:
    description = describe(service, caller, name)
    assert description.status_code == 200, description.text
    given: dict[str, str] = description.json()["storage_options"]
    return given


def test_a_client_reads_and_writes_its_table_and_no_other(service: Service, store: CloudStore) -> None:
    properties = {"uri": service.url, f"header.{CALLER}": "viewer cloud$orders"}
    client = lance.namespace.RestNamespace(**properties)
    dataset = lance.dataset(namespace_client=client, table_id=["cloud", "orders"])
    assert dataset.count_rows() == 100
    assert lancedb.connect_namespace("rest", properties).open_table("orders", namespace_path=["cloud"]).count_rows() == 100
    assert all(allowed for *_, allowed in store.checked)
    assert len(store.issued) == 1, "kept until shortly before it expires"
    vended = options(service, "viewer cloud$orders")
    other = dataset.uri.replace("orders", "orders2")
    with pytest.raises(Exception, match=DENIED):
        lance.dataset(other, storage_options=vended)
    assert store.checked[-1] == ("list", "sales/orders2.lance/_versions/", False), "refused by what was issued"
    with pytest.raises(Exception, match=DENIED):
        lance.write_dataset(ROWS, dataset.uri, mode="append", storage_options=vended)
    assert ("create", False) in {(action, allowed) for action, _, allowed in store.checked}
    writer = lance.namespace.RestNamespace(**{**properties, f"header.{CALLER}": "writer cloud$orders"})
    lance.write_dataset(ROWS, namespace_client=writer, table_id=["cloud", "orders"], mode="append")
    assert lance.dataset(namespace_client=client, table_id=["cloud", "orders"]).count_rows() == 200
    quoted = lance.namespace.RestNamespace(**{**properties, f"header.{CALLER}": "viewer cloud$it's"})
    assert lance.dataset(namespace_client=quoted, table_id=["cloud", "it's"]).count_rows() == 100


def test_a_read_that_lasts_longer_than_its_credentials_goes_on(
    service: Service, store: CloudStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.lifetime, store.delay = 1.2, 0.35
    # The expiry of a SAS is in whole seconds, and part of what the product signs.
    monkeypatch.setattr("federator.vending.azure._SESSION_SECONDS", 2)
    client = lance.namespace.RestNamespace(uri=service.url, **{f"header.{CALLER}": "viewer cloud$orders"})
    early = {"refresh_offset_millis": "400"}
    dataset = lance.dataset(namespace_client=client, table_id=["cloud", "orders"], storage_options=early)
    until, fragments = time.time() + 3 * store.lifetime, itertools.cycle(range(5))
    while time.time() < until:
        assert dataset.get_fragment(next(fragments)).to_table().num_rows == 10
    assert len(store.used) >= 3
    assert all(allowed for *_, allowed in store.checked)


def test_what_is_issued_field_by_field(service: Service, store: CloudStore) -> None:
    before = time.time()
    reading, writing = options(service, "viewer cloud$orders"), options(service, "writer cloud$orders")
    expires_at = int(reading["expires_at_millis"]) / 1000
    assert 3590 <= expires_at - before <= 3602
    assert "${LAKE_KEY}" not in str(reading)
    assert not any(word in name for name in reading for word in ("secret", "service_account", "client_id"))
    if isinstance(store, GcsStore):
        assert [name for name in reading if "token" in name] == ["google_storage_token"]
        roles = []
        for request in store.issued:
            assert request["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"
            assert request["requested_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
            (rule,) = request["options"]["accessBoundary"]["accessBoundaryRules"]
            assert rule["availableResource"] == "//storage.googleapis.com/projects/_/buckets/lake"
            assert rule["availabilityCondition"] == {
                "expression": "resource.name.startsWith('projects/_/buckets/lake/objects/sales/orders.lance/') || "
                "api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('sales/orders.lance/')"
            }
            roles += rule["availablePermissions"]
        assert roles == ["inRole:roles/storage.objectViewer", "inRole:roles/storage.objectUser"]
        return
    assert reading["account_name"] == reading["azure_storage_account_name"] == "acct"
    assert reading["sas_token"] == reading["azure_storage_sas_token"]
    read, write = ({key: text for key, (text,) in parse_qs(each["sas_token"]).items()} for each in (reading, writing))
    assert (read["sp"], write["sp"]) == ("rl", "rcwdl")
    assert (read["sr"], read["sdd"], read["spr"], read["sks"]) == ("d", "2", "https", "b")
    assert datetime.fromisoformat(read["se"]).timestamp() == expires_at
    assert store.issued[0]["Expiry"] == read["se"] == read["ske"]
    started_at = datetime.fromisoformat(store.issued[0]["Start"])
    assert 290 <= (datetime.fromtimestamp(before, UTC) - started_at).total_seconds() <= 310
    assert read["scid"] == write["scid"], "one principal"


def test_each_spelling_alone_opens_the_table(service: Service, store: CloudStore) -> None:
    vended = options(service, "viewer cloud$orders")
    uri = f"{'gs' if isinstance(store, GcsStore) else 'az'}://{store.bucket}/sales/orders.lance"
    bare = {name for name in vended if name in ("account_name", "sas_token")}
    prefixed = {name for name in vended if name.removeprefix("azure_storage_") in bare} - bare
    assert len(bare) == len(prefixed) == (2 if isinstance(store, AzureStore) else 0)
    for left_out in (bare, prefixed):
        chosen = {name: text for name, text in vended.items() if name not in left_out}
        assert lance.dataset(uri, storage_options=chosen).count_rows() == 100


def test_every_vending_is_audited_without_the_secret(service: Service, store: CloudStore) -> None:
    vended = options(service, "viewer cloud$orders")
    seal_pending(service.index)
    events = [json.loads(row.event) for row in audit_log.iter_events(service.index)]
    event = [event for event in events if event["kind"] == "credentials_vended"][-1]
    assert (event["actor"], event["subject"], event["detail"]["access"]) == ("somebody", "cloud$orders", "read")
    secret = vended.get("google_storage_token") or vended["sas_token"].rpartition("sig=")[2]
    assert secret not in str(event)
    if isinstance(store, GcsStore):
        assert (event["detail"]["method"], event["detail"]["issuer"]) == ("gcs", ACCOUNT)
    else:
        correlation = parse_qs(vended["sas_token"])["scid"][0]
        expected = ("azure", f"the account acct, correlation id {correlation}")
        assert (event["detail"]["method"], event["detail"]["issuer"]) == expected


def test_an_issuer_that_refuses_or_is_silent_is_an_error(service: Service, store: CloudStore) -> None:
    if isinstance(store, AzureStore):
        store.secret = "another"
    elif isinstance(store, GcsStore):
        store.status = 400
    description = describe(service, "viewer cloud$orders", vend_credentials=True)
    assert (description.status_code, description.json()["code"]) == (403, 15), description.text
    assert "AADSTS7000215" in description.text or "unauthorized_client" in description.text
    assert "storage_options" not in description.json()
    plain = describe(service, "writer *", vend_credentials=False).json()["storage_options"]
    assert not any(word in name for name in plain for word in ("token", "secret", "service_account"))
    if isinstance(store, GcsStore):
        store.status = 503
        description = describe(service, "viewer cloud$orders")
        assert (description.status_code, description.json()["code"]) == (503, 17)


def test_doctor_asks_the_issuer_for_nothing_that_opens_a_table(service: Service, store: CloudStore) -> None:
    built = build_vendor(service.settings.source("cloud"))
    assert built is not None
    if isinstance(store, GcsStore):
        assert built.check() == f"{ACCOUNT} can sign in"
        assert not store.issued
    else:
        assert built.check() == "acct issues user delegation keys"
        (times,) = store.issued
        ends = datetime.fromisoformat(times["Expiry"]).timestamp()
        assert ends - time.time() <= 300, "the key is not kept, and would not last"


def test_locations_that_cannot_be_limited_to_one_table_are_refused(service: Service, store: CloudStore) -> None:
    scheme = "gs" if isinstance(store, GcsStore) else "az"
    locations = [f"{scheme}://lake", f"{scheme}://lake/a/../b", f"{scheme}://lake/a%2Fb", f"{scheme}://*/x"]
    if scheme == "az":
        locations.append("abfss://lake@other.dfs.core.windows.net/t.lance")
    fill(service.index, "cloud", *(table("cloud", f"odd{i}", location=location) for i, location in enumerate(locations)))
    for i, location in enumerate(locations):
        description = describe(service, "admin *", f"odd{i}")
        assert description.status_code in (400, 406), (location, description.text)
        assert "storage_options" not in description.json()
    assert not store.issued
