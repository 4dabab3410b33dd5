"""Secrets of a source's configuration and of a catalog's URLs are in no response."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from sqlalchemy import insert

from federator.audit import seal_pending
from federator.audit.config_events import record_config_change
from federator.model import NamespaceRecord
from federator.runtime.redaction import mask_url_secrets, mask_value, register_secret
from federator.store import audit_log, runs
from federator.store import tables as t
from federator.views import extracts
from tests.fixtures.index_content import fill, table
from tests.unit.api.lance.conftest import Service, served

LOCATION = "s3://KEYID:pa55@bucket/sales/orders.lance"
SIGNED = "https://acct.blob.core.windows.net/c/sales/signed.lance?sv=2024-11-04&sp=r&sig=sIgNaTuRe%2Bplanted%3D"
PLANTED = ("KEYID", "pa55", "planted", "ENDPOINT-PW", "sIgNaTuRe", "sh0rtpw")
#: what a user of the catalog may have written into a table: secrets of the configuration, under names that say nothing
REPEATED = {
    "note": "opened with planted-connection", "pin": "sh0rtpw", "jdbc": "jdbc:x://h/db?pin=sh0rtpw&a=b",
    "json": '{"a": "planted\\"quote-é-secret"}', "odd": 'planted"quote-é-secret',
}  # fmt: skip
SHOWN = {
    "note": "opened with (masked)", "pin": "(masked)", "jdbc": "jdbc:x://h/db?pin=(masked)&a=b",
    "json": '{"a": "(masked)"}', "odd": "(masked)",
}  # fmt: skip
STORAGE = {
    "connection_string": "${CONNECTION}", "passphrase": "planted-clear", "header.x-auth": "file:{file}", "x-tenant": "${TENANT}",
    "endpoint": "http://user:ENDPOINT-PW@store:9000", "region": "${REGION}", "pin": "${PIN}", "odd": "${ODD}",
}  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    tmp_path = tmp_path_factory.mktemp("shown")
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield from _service(tmp_path, monkeypatch)


def _service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("CONNECTION", "planted-connection")
    monkeypatch.setenv("TENANT", "tenant-a")
    monkeypatch.setenv("REGION", "eu-1")
    monkeypatch.setenv("PIN", "sh0rtpw")
    monkeypatch.setenv("ODD", 'planted"quote-é-secret')
    (tmp_path / "header").write_text("planted-header")
    storage = {key: text.format(file=tmp_path / "header") if "file" in text else text for key, text in STORAGE.items()}
    source = {"impl": "federator.testing:CONNECTOR", "storage": storage, "plain": ["x-tenant"], "vend": "static"}
    with served(tmp_path, {"s": {**source, "store": "shown-secrets"}}) as running:
        properties = {"url": "https://t0:pa55@host/x", "k": "v", **REPEATED}
        doc = "at http://t0:pa55@host with planted-header"
        orders = table("s", "sales", "orders", location=LOCATION, properties=properties, doc=doc, owner="planted-header")
        signed = table("s", "sales", "signed", location=SIGNED, properties={"url": SIGNED, "k": "v"}, doc=f"at {SIGNED}")
        last = table("s", "sales", "last", location="s3://zoo/last.lance")
        fill(running.index, "s", NamespaceRecord("s", ("sales",), REPEATED), orders, signed, last)
        yield running


def describe(service: Service, caller: str, **body: Any) -> dict[str, Any]:
    response = service.post("/v1/table/s%24sales%24orders/describe", body, caller=caller)
    assert response.status_code == 200, response.text
    result: dict[str, Any] = response.json()
    return result


def test_a_viewer_gets_plain_options_only(service: Service) -> None:
    description = describe(service, "viewer s$sales$orders", with_table_uri=True, vend_credentials=True)
    assert description["storage_options"] == {
        "x-tenant": "tenant-a", "endpoint": "http://store:9000", "region": "eu-1", "k": "v", "url": "https://(masked)@host/x",
        **SHOWN,
    }  # fmt: skip
    assert {key: description["properties"][key] for key in SHOWN} == SHOWN
    assert description["location"] == "s3://(masked)@bucket/sales/orders.lance"
    assert not any(secret in str(description) for secret in PLANTED)


def test_a_viewer_gets_no_signature(service: Service) -> None:
    body = service.post("/v1/table/s%24sales%24signed/describe", {"with_table_uri": True}, caller="viewer s$sales").json()
    masked = "https://acct.blob.core.windows.net/c/sales/signed.lance?sv=2024-11-04&sp=r&sig=(masked)"
    assert body["location"] == body["properties"]["url"] == body["storage_options"]["url"] == masked
    assert "sIgNaTuRe" not in str(body), "nor in table_uri"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://b/t?X-Amz-Credential=AKIA%2Fx&X-Amz-Signature=ab12&v=1", "s3://b/t?X-Amz-Credential=(masked)&X-Amz-Signature=(masked)&v=1"),
        ("https://h/t?GoogleAccessId=me@x&Signature=a/b+c==&Expires=1", "https://h/t?GoogleAccessId=(masked)&Signature=(masked)&Expires=1"),
        ('{"a": "az://c/t?sig=x", "b": 1}', '{"a": "az://c/t?sig=(masked)", "b": 1}'),
        ("az://c/t%3Fsig=abc", "az://c/t%3Fsig=(masked)"),
        ("https://h/t?design=1&signed=2", "https://h/t?design=1&signed=2"),
    ],
)  # fmt: skip
def test_signatures_in_queries_are_masked_once(url: str, shown: str) -> None:
    assert mask_url_secrets(url) == shown
    assert mask_url_secrets(shown) == shown


def test_secrets_are_vended_as_they_are(service: Service) -> None:
    description = describe(service, "writer s", vend_credentials=True)
    assert description["location"] == LOCATION
    storage = description["storage_options"]
    assert (storage["connection_string"], storage["header.x-auth"]) == ("planted-connection", "planted-header")
    assert storage["endpoint"] == "http://user:ENDPOINT-PW@store:9000"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/tree?path=s%24sales", "/api/v1/tables/s%24sales%24orders", "/api/v1/tables/s%24sales%24signed",
        "/api/v1/search?q=orders", "/api/v1/datasets",
        "/api/v1/explain/s%24sales%24orders", "/api/v1/sources", "/api/v1/drift", "/api/v1/tree?view=merged",
        "/api/v1/graph/s%24sales%24orders", "/api/v1/graph/s%24sales%24signed", "/api/v1/schema/s%24sales%24orders",
        "/api/v1/snippets/s%24sales%24orders", "/api/v1/snippets/s%24sales%24signed",
        "/api/v1/tables/s%24sales%24orders?as_of=-0s", "/api/v1/diff?from=2020-01-01&to=now", "/v1/table",
    ],
)  # fmt: skip
def test_no_page_shows_userinfo(service: Service, path: str) -> None:
    response = service.get(path)
    assert response.status_code == 200, response.text
    assert not any(secret in response.text for secret in PLANTED)


@pytest.fixture(scope="module")
def drifted(service: Service) -> Service:
    seen = {"severity": "high", "source": "s", "detail": "d", "first_seen": 1.0, "last_seen": 2.0}
    rows = [
        {"kind": "missing", "subject": f"s$sales${name}", "other": other, **seen}
        for name, other in (("orders", LOCATION), ("signed", SIGNED), ("signed", f"{SIGNED}2"))
    ]
    with service.index.write() as connection:
        connection.execute(insert(t.drift), rows)
    return service


@pytest.mark.parametrize(
    ("url", "listed", "number"),
    [
        ("/api/v1/datasets?limit=1", "datasets", 3), ("/api/v1/datasets?as_of={now}&limit=1", "datasets", 3),
        ("/api/v1/drift?limit=1", "drift", 3),
    ],
)  # fmt: skip
def test_no_cursor_has_a_secret_of_a_location(drifted: Service, url: str, listed: str, number: int) -> None:
    start = url.format(now=quote(datetime.now(UTC).isoformat()))
    pages, cursors = [drifted.get(start).json()], []
    while (cursor := pages[-1]["next"]) is not None:
        cursors.append(cursor)
        pages.append(drifted.get(f"{start}&cursor={cursor}").json())
        assert len(pages) <= number, pages[-1]
    entries = [str(entry) for page in pages for entry in page[listed]]
    assert (len(entries), len(set(entries)), len(cursors)) == (number, number - (listed == "drift"), number - 1)
    sealed = 0
    for cursor in cursors:
        content = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        assert not any(secret.encode() in content for secret in PLANTED), content
        assert drifted.get(f"{start}&cursor={cursor}").headers["etag"], "the same for the same page"
        binding, position, revision = json.loads(content)
        before, mark, _ = position.partition("sealed:")
        sealed += bool(mark)
        for changed in (position.replace(mark, f"{mark}AAAA"), before + mark, "\x01sealed:", "\x01sealed:é") if mark else ():
            text = json.dumps([binding, changed, revision])
            refused = drifted.get(f"{start}&cursor={base64.urlsafe_b64encode(text.encode()).decode().rstrip('=')}")
            assert refused.status_code == 400, (changed, refused.text)
    assert sealed


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/namespace/s%24sales/describe", {}), ("/v1/table/s%24sales%24orders/describe", {"load_detailed_metadata": False}),
        ("/GetNamespace", {"name": "sales", "parent": ["s"]}), ("/GetTable", {"name": "orders", "namespace": ["s", "sales"]}),
    ],
)  # fmt: skip
def test_no_protocol_shows_a_secret_that_a_catalog_repeats(service: Service, path: str, body: dict[str, Any]) -> None:
    response = service.post(path, body)
    assert response.status_code == 200, response.text
    assert response.json()["properties"]["pin"] == "(masked)"
    assert not any(secret in response.text for secret in PLANTED)


def test_short_secrets_are_masked_as_values_only() -> None:
    register_secret("sh0rtpw")
    for text in ("the sh0rtpw", "sh0rtpwd", "x=sh0rtpwd", "s3://sh0rtpw/t", "a/sh0rtpw"):
        assert mask_value(text) == text
    assert mask_value("user:sh0rtpw@h, k=sh0rtpw;l=1") == "user:(masked)@h, k=(masked);l=1"


def test_no_error_shows_userinfo(service: Service) -> None:
    response = service.post("/v1/table/s%24sales%24orders/count_rows")
    assert response.status_code >= 400
    assert not any(secret in response.text for secret in PLANTED)


def test_a_search_finds_no_userinfo(service: Service) -> None:
    assert service.get("/api/v1/search?q=bucket").json()["nodes"]
    for secret in ("keyid", "pa55", "signature", "planted", "sh0rtpw", "quote", "property:sh0rtpw", "pin=sh0rtpw"):
        assert service.get(f"/api/v1/search?q={secret}").json()["nodes"] == []


def test_no_extract_of_a_report_has_userinfo(service: Service) -> None:
    with service.index.read_consistently() as connection:
        batches = {extract.name: list(extract.batches(connection)) for extract in extracts.EXTRACTS}
    text = str({name: pa.Table.from_batches(found).to_pylist() for name, found in batches.items() if found})
    assert "s3://(masked)@bucket/sales/orders.lance" in text
    assert not any(secret in text for secret in PLANTED)


def test_the_audit_of_the_configuration_shows_references_only(service: Service) -> None:
    with runs.run_lifetime(service.index, "crawl") as run:
        record_config_change(service.index, service.settings, run)
    with service.index.write() as connection:
        audit_log.append_event(
            connection, "written", actor="a", run_id=None, subject="s$sales", detail={"properties": REPEATED}
        )
    seal_pending(service.index)
    (event,) = [row.event for row in audit_log.iter_events(service.index) if "config_changed" in row.event]
    assert "${CONNECTION}" in event
    assert "http://(masked)@store:9000" in event
    assert not any(secret in event for secret in PLANTED)
    (written,) = [row.event for row in audit_log.iter_events(service.index) if '"written"' in row.event]
    assert json.loads(written)["detail"]["properties"] == SHOWN
