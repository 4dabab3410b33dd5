"""Tokens from the command line: shown once, seen nowhere else, ended for good."""

from __future__ import annotations

import json

import pytest

from federator.index import audit_log, open_index, tokens
from tests.cli.conftest import Shell


@pytest.fixture
def keys(shell: Shell) -> Shell:
    shell.index().close()
    return shell


def test_the_token_is_on_stdout_and_only_its_digest_is_kept(keys: Shell) -> None:
    made = keys.run(
        "token", "create", "ci", "--role", "operator", "--scope", "lake$sales", "--scope", "copy/a/b", "--expires", "12h"
    )
    assert made.exit_code == 0, made.output
    secret = made.stdout.strip()
    assert secret.startswith("lft_")
    assert len(secret) > 40
    assert "ci is operator until" in made.stderr
    (listed,) = keys.json("token", "list")["tokens"]
    assert (listed["name"], listed["role"], listed["state"]) == ("ci", "operator", "active")
    assert listed["scopes"] == ["copy$a$b", "lake$sales"]
    assert listed["expires_at"] - listed["created_at"] == pytest.approx(12 * 3600)
    index = open_index("sqlite:///federator.db", base=keys.folder)
    try:
        found = tokens.find(index, tokens.digest_of_token(secret))
        assert found is not None
        assert found.name == "ci"
    finally:
        index.close()
    stored = b"".join(file.read_bytes() for file in keys.folder.iterdir() if file.is_file())
    assert b"copy$a$b" in stored
    assert secret.encode() not in stored
    assert secret.removeprefix("lft_").encode() not in stored


def test_by_default_it_sees_nothing_and_says_so(keys: Shell) -> None:
    made = keys.run("token", "create", "new", "--output", "json")
    document = json.loads(made.stdout)
    assert (document["role"], document["scopes"], document["state"]) == ("viewer", [], "active")
    assert document["expires_at"] is not None
    assert "it sees nothing" in made.stderr
    assert "(nothing)" in keys.run("token", "list").stdout
    assert keys.json("token", "create", "ever", "--scope", "*", "--expires", "never")["expires_at"] is None
    assert "no source is called lakes yet" in keys.run("token", "create", "typo", "--scope", "lakes").stderr


def test_a_revoked_one_stays_and_its_name_is_not_given_again(keys: Shell) -> None:
    assert keys.run("token", "create", "ci").exit_code == 0
    assert keys.json("token", "revoke", "ci")["state"] == "revoked"
    again = keys.run("token", "revoke", "ci")
    assert (again.exit_code, "was revoked before" in again.stderr) == (1, True)
    assert "is there, or was" in keys.run("token", "create", "ci").stderr
    assert "no token is called 'other'" in keys.run("token", "revoke", "other").stderr
    index = open_index("sqlite:///federator.db", base=keys.folder)
    try:
        told = [(row["kind"], row["subject"]) for row in audit_log.events(index)]
    finally:
        index.close()
    assert told == [("token_created", "ci"), ("token_revoked", "ci")]


@pytest.mark.parametrize(
    "words",
    [
        ("x", "--scope", ""), ("x", "--scope", "$"), ("x", "--scope", "lake$$x"), ("x", "--expires", "0s"), ("x", "--expires", "soon"),
        ("x", "--role", "owner"), ("a b",), ("-x",), ("",), ("n" * 101,),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(keys: Shell, words: tuple[str, ...]) -> None:
    refused = keys.run("token", "create", *words)
    assert refused.exit_code == 64, refused.output
    assert keys.json("token", "list")["tokens"] == []
