"""``token``: a token is shown once, stored nowhere in clear, and revoked permanently."""

from __future__ import annotations

import json
import time
from contextlib import closing
from datetime import datetime

import pytest

from federator.store import audit_log, open_index, sessions, tokens
from tests.unit.cli.conftest import Shell


@pytest.fixture
def keys(shell: Shell) -> Shell:
    shell.index().close()
    return shell


def test_the_token_is_on_stdout_and_only_its_digest_is_kept(keys: Shell) -> None:
    created = keys.run(
        "token", "create", "ci", "--role", "operator", "--scope", "lake$sales", "--scope", "copy/a/b", "--expires", "12h"
    )
    assert created.exit_code == 0, created.output
    secret = created.stdout.strip()
    assert secret.startswith("lft_")
    assert len(secret) > 40
    assert "ci is operator until" in created.stderr
    (listed,) = keys.json("token", "list")["tokens"]
    assert (listed["name"], listed["role"], listed["state"]) == ("ci", "operator", "active")
    assert listed["scopes"] == ["copy$a$b", "lake$sales"]
    lifetime = datetime.fromisoformat(listed["expires_at"]) - datetime.fromisoformat(listed["created_at"])
    assert lifetime.total_seconds() == pytest.approx(12 * 3600)
    index = open_index("sqlite:///federator.db", base=keys.folder)
    try:
        result = tokens.find_token(index, tokens.token_digest(secret))
        assert result is not None
        assert result.name == "ci"
    finally:
        index.close()
    stored = b"".join(file.read_bytes() for file in keys.folder.iterdir() if file.is_file())
    assert b"copy$a$b" in stored
    assert secret.encode() not in stored
    assert secret.removeprefix("lft_").encode() not in stored


def test_by_default_it_sees_nothing_and_says_so(keys: Shell) -> None:
    created = keys.run("token", "create", "new", "--output", "json")
    document = json.loads(created.stdout)
    assert (document["role"], document["scopes"], document["state"]) == ("viewer", [], "active")
    assert document["expires_at"] is not None
    assert "the token sees nothing" in created.stderr
    assert "(nothing)" in keys.run("token", "list").stdout
    assert keys.json("token", "create", "ever", "--scope", "*", "--expires", "never")["expires_at"] is None
    assert "no source lakes is configured yet" in keys.run("token", "create", "typo", "--scope", "lakes").stderr


def test_a_revoked_one_stays_and_its_name_is_not_given_again(keys: Shell) -> None:
    assert keys.run("token", "create", "ci").exit_code == 0
    assert keys.json("token", "revoke", "ci")["state"] == "revoked"
    again = keys.run("token", "revoke", "ci")
    assert (again.exit_code, "was already revoked" in again.stderr) == (1, True)
    assert "was already used for a token" in keys.run("token", "create", "ci").stderr
    assert "there is no token 'other'" in keys.run("token", "revoke", "other").stderr
    index = open_index("sqlite:///federator.db", base=keys.folder)
    try:
        response = [(row.kind, row.subject) for row in audit_log.list_events(index)]
    finally:
        index.close()
    assert response == [("token_created", "ci"), ("token_revoked", "ci")]


@pytest.mark.parametrize(
    "words",
    [
        ("x", "--scope", ""), ("x", "--scope", "$"), ("x", "--scope", "lake$$x"), ("x", "--expires", "0s"), ("x", "--expires", "soon"),
        ("x", "--role", "owner"), ("a b",), ("-x",), ("",), ("n" * 101,),
    ],
)  # fmt: skip
def test_invalid_options_of_create_are_refused(keys: Shell, words: tuple[str, ...]) -> None:
    refused = keys.run("token", "create", *words)
    assert refused.exit_code == 64, refused.output
    assert keys.json("token", "list")["tokens"] == []


def test_sessions_of_people_are_listed_and_ended(keys: Shell) -> None:
    limits = sessions.SessionLimits(lifetime=3600.0, idle_timeout=1800.0, max_sessions=5)
    with closing(keys.index()) as index:
        for name in ("anna", "anna", "eve"):
            sessions.create_session(
                index, name, role_values=[], scopes=[], limits=limits, now=time.time(), replaced=None, actor=f"oidc:{name}", detail={}
            )  # fmt: skip
    listed = keys.json("session", "list")["sessions"]
    assert [session["name"] for session in listed] == ["anna", "anna", "eve"]
    assert listed[0]["id"] in keys.run("session", "list", "--name", "anna").stdout
    assert keys.run("session", "revoke", "eve", "--id", listed[0]["id"]).exit_code == 64
    assert keys.json("session", "revoke", "anna", "--id", listed[0]["id"]) == {"name": "anna", "revoked": 1}
    assert keys.run("session", "revoke", "anna").stdout == "1 session of anna revoked\n"
    assert [session["name"] for session in keys.json("session", "list")["sessions"]] == ["eve"]
    assert keys.run("session", "revoke", "anna").exit_code == 64
    kinds = [event["kind"] for event in keys.json("audit", "list")["events"]]
    assert kinds.count("sessions_revoked") == 2
