"""Tokens over HTTP: listed, created with a secret that is shown once, revoked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from federator.api.app import create_app
from federator.model.scopes import EVERYTHING
from federator.settings import Settings
from federator.store import Index, audit_log
from tests.unit.api import worlds
from tests.unit.api.conftest import Api


@pytest.fixture
def admin(index: Index, settings_of: Callable[..., Settings], tmp_path: Path) -> Iterator[Api]:
    app = create_app(settings_of(serve={"auth": "required"}))
    yield worlds.as_caller(app, index, "admin", EVERYTHING, "root")
    app.state.index.close()


def _with(api: Api, secret: str) -> Api:
    return Api(api.app, {"Authorization": f"Bearer {secret}"})


def test_a_token_is_created_used_and_revoked(admin: Api, index: Index) -> None:
    body = {"name": "ci", "role": "operator", "scopes": ["lake$sales"], "lifetime_days": 30}
    response = admin.post("/api/v1/tokens", json=body)
    created = response.json()
    assert (response.status_code, response.headers["cache-control"]) == (201, "no-store")
    assert (created["name"], created["state"], created["created_by"]) == ("ci", "active", "token:root")
    secret = created["token"]
    assert secret.startswith("lft_")
    me = _with(admin, secret).json("/api/v1/me")
    assert (me["name"], me["role"], me["scopes"]) == ("token:ci", "operator", ["lake$sales"])
    listed = admin.get("/api/v1/tokens")
    assert secret not in listed.text
    assert [(each["name"], each["state"]) for each in listed.json()["tokens"]] == [("ci", "active"), ("root", "active")]
    assert admin.post("/api/v1/tokens", json=body).status_code == 409
    revoked = admin.post("/api/v1/tokens/ci/revoke").json()
    assert (revoked["state"], revoked["revoked_by"]) == ("revoked", "token:root")
    assert admin.post("/api/v1/tokens/ci/revoke").status_code == 409
    assert admin.post("/api/v1/tokens/nobody/revoke").status_code == 404
    fresh = create_app(admin.app.state.settings)
    assert Api(fresh, {"Authorization": f"Bearer {secret}"}).get("/api/v1/me").status_code == 401
    fresh.state.index.close()
    events = [
        event for kind in ("token_created", "token_revoked")
        for event in audit_log.list_recent_events(index, audit_log.AuditFilter(kind=kind, subject="ci"))
    ]  # fmt: skip
    assert [event.actor for event in events] == ["token:root", "token:root"]
    assert secret not in str(events)


def test_a_token_without_an_end_and_one_without_scopes(admin: Api) -> None:
    forever = admin.post("/api/v1/tokens", json={"name": "forever", "lifetime_days": None}).json()
    assert (forever["expires_at"], forever["role"], forever["scopes"]) == (None, "viewer", [])
    default = admin.post("/api/v1/tokens", json={"name": "default"}).json()
    assert default["expires_at"] is not None


@pytest.mark.parametrize(
    "change",
    [
        {"name": "a b"}, {"name": ""}, {"name": "x" * 101}, {"role": "king"}, {"scopes": ["$"]}, {"scopes": ["a\0"]},
        {"scopes": "lake"}, {"lifetime_days": 0}, {"lifetime_days": -1}, {"lifetime_days": 1e9}, {"more": 1},
    ],
)  # fmt: skip
def test_what_no_token_can_have_is_refused(admin: Api, change: dict[str, Any]) -> None:
    response = admin.post("/api/v1/tokens", json={"name": "ci", **change})
    assert (response.status_code, response.json()["code"]) == (400, 13)
    assert [each["name"] for each in admin.json("/api/v1/tokens")["tokens"]] == ["root"]
