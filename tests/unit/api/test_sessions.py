"""Sessions of browsers: when they end, how many there are, and what is stored of them, on both databases."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import select

from federator.api.problems import RequestRejected
from federator.api.sessions import SessionAuthenticator
from federator.settings.oidc import OidcSettings, SignInSettings
from federator.store import Index, requests, sessions
from federator.store import tables as t

LIMITS = sessions.SessionLimits(lifetime=100.0, idle_timeout=40.0, max_sessions=2)


def create(index: Index, now: float, name: str = "anna", replaced: str | None = None) -> str:
    return sessions.create_session(
        index, name, role_values=["ä"], scopes=["lake$a"], limits=LIMITS, now=now, replaced=replaced, actor=f"oidc:{name}", detail={}
    )  # fmt: skip


def find(index: Index, secret: str, now: float) -> sessions.Session | None:
    return sessions.find_session(index, secret, now=now, idle_timeout=LIMITS.idle_timeout)


def count(index: Index) -> int:
    with index.read() as connection:
        return len(connection.execute(select(t.session)).all())


def test_a_session_ends_by_age_and_by_idleness(either_index: Index) -> None:
    secret = create(either_index, 1000.0)
    assert find(either_index, secret, 1000.0) == sessions.Session("anna", ("ä",), ("lake$a",), 1000.0, 1000.0, 1100.0, None)
    assert find(either_index, secret, 1039.9) is not None
    assert find(either_index, secret, 1040.0) is None
    sessions.record_use(either_index, secret, now=1039.0)
    assert find(either_index, secret, 1078.0) is not None
    sessions.record_use(either_index, secret, now=1078.0)
    assert find(either_index, secret, 1099.9) is not None
    assert find(either_index, secret, 1100.0) is None
    assert find(either_index, secret + "x", 1000.0) is None
    with either_index.read() as connection:
        assert secret not in json.dumps([list(row) for row in connection.execute(select(t.session))])


def test_a_person_has_a_number_of_sessions_and_ended_ones_are_removed(either_index: Index) -> None:
    first, second, other = create(either_index, 1000.0), create(either_index, 1001.0), create(either_index, 1002.0, "eve")
    third = create(either_index, 1003.0)
    assert [find(either_index, each, 1004.0) is not None for each in (first, second, third, other)] == [False, True, True, True]
    fourth = create(either_index, 1005.0, replaced=third)
    assert [find(either_index, each, 1006.0) is not None for each in (second, third, fourth)] == [True, False, True]
    create(either_index, 1200.0, "bob")
    assert count(either_index) == 1


def test_a_sign_in_takes_lost_claims_from_the_other_sessions_of_the_person(either_index: Index) -> None:
    def sign_in(name: str, values: list[str], scopes: list[str]) -> str:
        return sessions.create_session(
            either_index,
            name,
            role_values=values,
            scopes=scopes,
            limits=LIMITS,
            now=1000.0,
            replaced=None,
            actor="a",
            detail={},
        )

    before, other = sign_in("anna", ["ops", "staff"], ["lake", "copy"]), sign_in("eve", ["ops"], ["lake"])
    sign_in("anna", ["staff", "admins"], ["copy", "*"])
    found = [find(either_index, secret, 1001.0) for secret in (before, other)]
    assert [(each.role_values, each.scopes) for each in found if each] == [(("staff",), ("copy",)), (("ops",), ("lake",))]


def test_what_a_person_has_queued_ends_with_all_sessions(either_index: Index) -> None:
    create(either_index, 1000.0)
    create(either_index, 1001.0)
    with either_index.write() as connection:
        queued = [
            requests.queue_request(connection, kind, {}, actor=actor).id
            for kind, actor in (("crawl", "oidc:anna"), ("plan", "oidc:eve"), ("sync", "token:anna"))
        ]
    with either_index.read() as connection:
        first = next(iter(connection.execute(select(t.session.c.digest)).scalars()))
    for session, states in ((sessions.session_id(first), ["queued"] * 3), (None, ["cancelled", "queued", "queued"])):
        assert sessions.revoke_sessions(either_index, "anna", actor="admin", id=session) == 1
        with either_index.read() as connection:
            assert [requests.get_request(connection, number).state for number in queued] == states


def test_signing_out_ends_the_one_session_and_is_recorded_once(either_index: Index) -> None:
    secret, other = create(either_index, 1000.0), create(either_index, 1000.0)
    for _ in range(2):
        sessions.delete_session(either_index, secret, actor="oidc:anna")
    assert [find(either_index, each, 1000.0) is not None for each in (secret, other)] == [False, True]
    with either_index.read() as connection:
        kinds = [json.loads(text)["kind"] for text in connection.execute(select(t.audit_outbox.c.event)).scalars()]
    assert kinds == ["signed_in", "signed_in", "signed_out"]


def test_a_request_keeps_a_session_and_another_process_ends_it_within_a_second(sqlite_index: Index) -> None:
    sign_in = SignInSettings(
        client_id="c", redirect_uri="https://federator.corp/auth/callback", session_lifetime=100, idle_timeout=40
    )
    settings = OidcSettings(
        issuer="https://idp.corp", audience="a", roles={"ä": "viewer"}, scopes={"ä": ("lake",)}, sign_in=sign_in
    )
    clock = [1000.0]
    authenticator = SessionAuthenticator(sqlite_index, settings, sign_in, clock=lambda: clock[0])
    secret = create(sqlite_index, 1000.0)
    for clock[0] in (1000.0, 1015.0, 1045.0, 1080.0):
        assert authenticator.authenticate_cached(secret) is None
        assert authenticator.authenticate(secret).principal.scopes.texts == ("lake", "lake$a")
        assert authenticator.authenticate_cached(secret) is not None
    assert secret not in repr(authenticator.authenticate_cached(secret))
    sessions.delete_session(sqlite_index, secret, actor="another process")
    clock[0] += 0.9
    assert authenticator.authenticate_cached(secret) is not None
    clock[0] += 0.2
    assert authenticator.authenticate_cached(secret) is None
    with pytest.raises(RequestRejected, match="the session has ended"):
        authenticator.authenticate(secret)
