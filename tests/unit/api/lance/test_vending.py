"""Clients without credentials of their own read and write exactly the table that the service gave them credentials for.

The store is moto behind the enforcing proxy of ``tests.fixtures.enforcing_s3``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import lance.namespace
import lancedb
import pyarrow as pa
import pytest
import requests

from federator.api import authentication, security_middleware
from federator.audit import seal_pending
from federator.model.scopes import Scopes
from federator.store import audit_log, tokens
from federator.vending import Vendors
from tests.fixtures.enforcing_s3 import OWNER, ROLE, EnforcingS3, enforcing_s3
from tests.fixtures.index_content import fill, table
from tests.unit.api.lance.conftest import CALLER, Service, served

ROWS = pa.table({"id": range(1000)})
CLIENT = {"client_max_retries": "1", "client_retry_timeout": "5"}


@pytest.fixture
def store(glue_url: str) -> Iterator[EnforcingS3]:
    with enforcing_s3(glue_url, external_id="agreed") as proxy:
        yield proxy


@pytest.fixture
def bucket(store: EnforcingS3) -> str:
    return store.new_bucket()


def source_of(store: EnforcingS3, bucket: str) -> dict[str, Any]:
    storage = {
        "endpoint": store.url, "allow_http": "true", "region": "us-east-1", "access_key_id": "${LAKE_KEY}",
        "secret_access_key": "${LAKE_SECRET}", **CLIENT,
    }  # fmt: skip
    sts = {"role_arn": ROLE, "endpoint": store.url, "external_id": "agreed"}
    return {"impl": "dir", "root": f"s3://{bucket}", "storage": storage, "vend": "sts", "sts": sts}


@pytest.fixture
def service(store: EnforcingS3, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("LAKE_KEY", OWNER["access_key_id"])
    monkeypatch.setenv("LAKE_SECRET", OWNER["secret_access_key"])
    with served(tmp_path, {"s3": source_of(store, bucket)}) as running:
        for name in ("orders", "salaries"):
            lance.write_dataset(ROWS, f"s3://{bucket}/{name}.lance", storage_options=store.owner_options)
        running.crawl("s3")
        yield running


def namespace(service: Service, caller: str) -> Any:
    """pylance's client of the service. It knows the address only."""
    return lance.namespace.RestNamespace(uri=service.url, **{f"header.{CALLER}": caller})


def describe(service: Service, caller: str, name: str = "orders", **body: Any) -> Any:
    return service.post(f"/v1/table/s3%24{name}/describe", body, caller=caller)


def options(service: Service, caller: str, name: str = "orders", **body: Any) -> dict[str, str]:
    description = describe(service, caller, name, **body)
    assert description.status_code == 200, description.text
    found: dict[str, str] = description.json()["storage_options"]
    return found


def vendings(service: Service) -> list[dict[str, Any]]:
    seal_pending(service.index)
    events = [json.loads(row.event) for row in audit_log.iter_events(service.index)]
    return [event for event in events if event["kind"] == "credentials_vended"]


def test_pylance_reads_its_table_and_no_other(service: Service, store: EnforcingS3, bucket: str) -> None:
    dataset = lance.dataset(namespace_client=namespace(service, "viewer s3$orders"), table_id=["s3", "orders"])
    assert dataset.to_table(filter="id >= 990").num_rows == 10
    assert store.assumed[0]["RoleSessionName"] == "somebody"
    assert {each.session for each in store.checked if each.key_id} == {"somebody"}, "the owner's key never leaves the service"
    vended = options(service, "viewer s3$orders")
    assert OWNER["secret_access_key"] not in str(vended)
    assert OWNER["access_key_id"] not in str(vended)
    before = len(store.denied("somebody"))
    with pytest.raises(Exception, match=r"(?i)denied|403|forbidden"):
        lance.dataset(f"s3://{bucket}/salaries.lance", storage_options=vended)
    assert len(store.denied("somebody")) > before, "refused by the policy, not by the client"
    with pytest.raises(Exception, match=r"(?i)denied|403|forbidden"):
        lance.write_dataset(ROWS, f"s3://{bucket}/orders.lance", mode="append", storage_options=vended)
    assert lance.dataset(f"s3://{bucket}/orders.lance", storage_options=store.owner_options).count_rows() == 1000
    without = {key: text for key, text in vended.items() if "token" not in key and "key" not in key}
    with pytest.raises(Exception, match=r"(?i)denied|403|forbidden|credential"):
        lance.dataset(f"s3://{bucket}/orders.lance", storage_options=without)


def test_a_writer_appends_deletes_and_creates_through_pylance(service: Service, store: EnforcingS3, bucket: str) -> None:
    client = namespace(service, "writer s3")
    lance.write_dataset(ROWS, namespace_client=client, table_id=["s3", "orders"], mode="append")
    dataset = lance.dataset(namespace_client=client, table_id=["s3", "orders"])
    assert dataset.count_rows() == 2000
    dataset.delete("id < 500")
    dataset.create_scalar_index("id", "BTREE")
    dataset.optimize.compact_files()
    assert lance.dataset(namespace_client=client, table_id=["s3", "orders"]).count_rows() == 1000
    lance.write_dataset(ROWS, namespace_client=client, table_id=["s3", "fresh"], mode="create")
    assert lance.dataset(f"s3://{bucket}/fresh.lance", storage_options=store.owner_options).count_rows() == 1000
    assert not [each for each in store.denied("somebody") if each.action != "s3:GetObject"], store.denied("somebody")
    with pytest.raises(Exception, match=r"(?i)denied|403|forbidden"):
        lance.write_dataset(ROWS, f"s3://{bucket}/salaries.lance", mode="append", storage_options=options(service, "writer s3"))


def test_lancedb_reads_and_appends_to_its_table_and_no_other(service: Service, store: EnforcingS3, bucket: str) -> None:
    def connect(caller: str) -> Any:
        return lancedb.connect_namespace("rest", {"uri": service.url, f"header.{CALLER}": caller})

    reader = connect("viewer s3$orders").open_table("orders", namespace_path=["s3"])
    assert reader.count_rows() == 1000
    assert reader.search().where("id < 3").to_arrow().num_rows == 3
    with pytest.raises(Exception, match=r"(?i)denied|403|forbidden"):
        reader.add(ROWS)
    with pytest.raises(Exception, match=r"(?i)not found|no table"):
        connect("viewer s3$orders").open_table("salaries", namespace_path=["s3"])
    writer = connect("writer s3$orders").open_table("orders", namespace_path=["s3"])
    writer.add(ROWS)
    assert writer.count_rows() == 2000
    assert {each.session for each in store.checked if each.key_id} == {"somebody"}


@pytest.mark.parametrize("through", ["pylance", "lancedb"])
def test_a_read_that_lasts_longer_than_its_token_goes_on(
    service: Service, store: EnforcingS3, bucket: str, through: str
) -> None:
    # More requests than Lance sends at once, so that the last ones are signed long after the first ones.
    rows = pa.table({"id": range(300)})
    lance.write_dataset(
        rows, f"s3://{bucket}/orders.lance", mode="overwrite", max_rows_per_file=2, storage_options=store.owner_options
    )
    # Three rounds of requests at least: two of them would end before the second token does.
    store.lifetime, store.delay = 2.0, 1.9
    who, early = "viewer s3$orders", {"refresh_offset_millis": "400"}
    if through == "pylance":
        client = namespace(service, who)
        dataset = lance.dataset(namespace_client=client, table_id=["s3", "orders"], storage_options=early)
        started_at = time.time()
        read = dataset.to_table()
    else:
        db = lancedb.connect_namespace("rest", {"uri": service.url, f"header.{CALLER}": who}, storage_options=early)
        opened = db.open_table("orders", namespace_path=["s3"])
        started_at = time.time()
        read = opened.to_arrow()
    assert read.num_rows == 300
    assert time.time() - started_at > 2 * store.lifetime
    assert len({each.key_id for each in store.checked if each.session == "somebody" and each.allowed}) >= 3
    assert not store.denied("somebody")


def test_an_expired_token_reads_nothing(service: Service, store: EnforcingS3, bucket: str) -> None:
    store.lifetime = 1.0
    vended = options(service, "viewer s3$orders")
    time.sleep(1.2)
    with pytest.raises(Exception, match=r"(?i)expired"):
        lance.dataset(f"s3://{bucket}/orders.lance", storage_options=vended)


def test_the_options_have_both_spellings_and_an_expiry(service: Service, store: EnforcingS3) -> None:
    vended = options(service, "viewer s3$orders", vend_credentials=True)
    for key in ("access_key_id", "secret_access_key", "session_token", "region"):
        assert vended[key] == vended[f"aws_{key}"] != ""
    assert vended["endpoint"] == store.url
    assert 3500_000 < int(vended["expires_at_millis"]) - time.time() * 1000 <= 3600_000
    assert "skip_signature" not in vended
    description = describe(service, "viewer s3$orders", vend_credentials=False)
    assert description.json()["storage_options"].keys() == {"endpoint", "allow_http", "region", *CLIENT}
    assert describe(service, "viewer s3$orders").headers["Cache-Control"] == "no-store"


def test_each_spelling_alone_opens_the_table(service: Service, bucket: str) -> None:
    vended = options(service, "viewer s3$orders")
    names = ("access_key_id", "secret_access_key", "session_token", "region")
    for left_out in (set(names), {f"aws_{name}" for name in names}):
        chosen = {name: text for name, text in vended.items() if name not in left_out}
        assert len(chosen) == len(vended) - len(names)
        assert lance.dataset(f"s3://{bucket}/orders.lance", storage_options=chosen).count_rows() == 1000


def test_credentials_are_kept_for_a_caller_and_an_access_until_shortly_before_they_expire(
    service: Service, store: EnforcingS3
) -> None:
    first = options(service, "viewer s3$orders")
    assert options(service, "operator s3$orders") == first, "both may read"
    assert len(store.assumed) == 1
    assert options(service, "writer s3$orders")["access_key_id"] != first["access_key_id"]
    assert options(service, "viewer s3$salaries", "salaries")["access_key_id"] != first["access_key_id"]
    assert len(store.assumed) == 3
    store.lifetime = 2.0
    short = options(service, "writer s3$salaries", "salaries")
    time.sleep(1.6)
    assert options(service, "writer s3$salaries", "salaries")["access_key_id"] != short["access_key_id"]


def test_every_vending_is_audited_without_the_secret(service: Service, store: EnforcingS3, bucket: str) -> None:
    vended = options(service, "viewer s3$orders")
    options(service, "writer s3")
    options(service, "viewer s3$orders")
    options(service, "viewer s3$orders", vend_credentials=False)
    events = vendings(service)
    assert [event["detail"]["access"] for event in events] == ["read", "write", "read"]
    assert {(event["actor"], event["subject"]) for event in events} == {("somebody", "s3$orders")}
    assert events[0]["detail"]["location"] == f"s3://{bucket}/orders.lance"
    assert events[0]["detail"]["issuer"] == f"{ROLE} as somebody"
    assert int(events[0]["detail"]["expires_at"] * 1000) == int(vended["expires_at_millis"])
    for secret in (vended["secret_access_key"], vended["session_token"], OWNER["secret_access_key"]):
        assert secret not in str(events)


def test_a_revoked_role_or_scope_stops_the_next_vending(service: Service, store: EnforcingS3) -> None:
    options(service, "writer s3$orders")
    assert "s3:PutObject" in store.assumed[-1]["Policy"]
    options(service, "viewer s3$orders")
    assert "s3:PutObject" not in store.assumed[-1]["Policy"], "a writer who became a viewer does not get what is cached"
    assert describe(service, "viewer s3$salaries").status_code == 404
    assert describe(service, "viewer ").status_code == 404


def test_a_location_that_contains_a_hidden_table_is_not_vended(service: Service, store: EnforcingS3, bucket: str) -> None:
    inner = table("mem", "hr", "inner", location=f"s3a://{bucket}/orders.lance/inner.lance")
    fill(service.index, "mem", inner)
    refused = describe(service, "viewer s3$orders")
    assert (refused.status_code, refused.json()["code"]) == (403, 15)
    assert "inner" not in refused.text
    assert not store.assumed
    assert options(service, "viewer s3$orders,mem$hr")["session_token"]
    assert "session_token" not in options(service, "viewer s3$orders", vend_credentials=False)


def test_locations_that_cannot_be_limited_to_one_table_are_refused(service: Service, store: EnforcingS3, bucket: str) -> None:
    locations = [
        f"s3://{bucket}",
        f"s3://{bucket}/",
        f"s3://{bucket}/a/../b",
        f"s3://{bucket}/a%2Fb",
        "s3://*/x",
        f"s3://{bucket}--x-s3/t",
    ]
    fill(service.index, "s3", *(table("s3", f"odd{i}", location=location) for i, location in enumerate(locations)))
    for i, location in enumerate(locations):
        description = describe(service, "admin *", f"odd{i}")
        assert description.status_code in (400, 406), (location, description.text)
        assert "storage_options" not in description.json()
    named = table("s3", "named", location=f"s3://{bucket}/named.lance", properties={"aws_endpoint": "http://evil"})
    fill(service.index, "s3", named)
    assert describe(service, "admin *", "named").status_code == 406
    assert not store.assumed


def test_names_with_wildcards_are_literal(service: Service, store: EnforcingS3, bucket: str) -> None:
    for name in ("a*", "abc", "h_x$${*}t"):
        lance.write_dataset(ROWS, f"s3://{bucket}/{name}.lance", storage_options=store.owner_options)
    wild = [table("s3", name, location=f"s3://{bucket}/{name}.lance") for name in ("a*", "h_x$${*}t")]
    fill(service.index, "s3", *wild)
    vended = options(service, "viewer s3", "a%2A")
    assert lance.dataset(f"s3://{bucket}/a*.lance", storage_options=vended).count_rows() == 1000
    with pytest.raises(Exception, match=r"(?i)denied|403|forbidden"):
        lance.dataset(f"s3://{bucket}/abc.lance", storage_options=vended)


def test_a_failing_sts_is_an_error_and_not_a_response_without_credentials(service: Service, store: EnforcingS3) -> None:
    store.answers_sts = False
    description = describe(service, "viewer s3$orders")
    assert (description.status_code, description.json()["code"]) == (503, 17)
    assert options(service, "viewer s3$orders", vend_credentials=False)
    store.answers_sts, store.external_id = True, "another"
    description = describe(service, "viewer s3$orders")
    assert (description.status_code, description.json()["code"]) == (403, 15)
    assert vendings(service) == []


def test_a_token_that_is_revoked_while_its_credentials_are_issued_gets_none(
    store: EnforcingS3, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An issuer may take half a minute, longer than a revocation needs."""
    monkeypatch.setenv("LAKE_KEY", OWNER["access_key_id"])
    monkeypatch.setenv("LAKE_SECRET", OWNER["secret_access_key"])
    for module in (authentication, security_middleware):
        monkeypatch.setattr(module, "CACHE_SECONDS", 0.0)
    lance.write_dataset(ROWS, f"s3://{bucket}/orders.lance", storage_options=store.owner_options)
    with served(tmp_path, {"s3": source_of(store, bucket)}, serve={"auth": "required"}) as service:
        service.crawl("s3")
        scopes = Scopes.parse(["s3"])
        secret, _ = tokens.create_token(service.index, "ci", role="viewer", scopes=scopes, lifetime=None, actor="tests")
        request = {
            "url": f"{service.url}/v1/table/s3%24orders/describe",
            "json": {},
            "headers": {"x-api-key": secret},
            "timeout": 60,
        }
        assert "aws_session_token" in requests.post(**request).json()["storage_options"]
        issue = Vendors.issue

        def issue_late(vendors: Vendors, *arguments: Any) -> Any:
            issued = issue(vendors, *arguments)
            tokens.revoke_token(service.index, "ci", actor="boss")
            return issued

        monkeypatch.setattr(Vendors, "issue", issue_late)
        refused = requests.post(**request)
    assert (refused.status_code, refused.json()["code"], "storage_options" in refused.json()) == (401, 16, False)
