"""Heads are published to a file, a webhook and an object store before a run succeeds."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from federator.audit import verify_log
from federator.audit.anchors import AnchorUnavailable, FileAnchor, ObjectAnchor, build_anchor
from federator.audit.heads import Head
from federator.audit.keys import generate_key_pair, is_valid_signature, load_public_keys, load_signer
from federator.audit.sealing import configured_anchor, configured_signer
from federator.connector import ConfigError, StateError
from federator.service import Federator
from federator.settings import Settings, parse_settings
from federator.store import audit_log, runs

HEAD = Head("chain", 7, "d" * 64, 1.5, "key", "sig")


class Hook:
    """A webhook that keeps what it is sent, and answers as it is told."""

    def __init__(self) -> None:
        self.got: list[tuple[str | None, Any]] = []
        self.status = 200
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.got.append((self.headers.get("Authorization"), body))
                self.send_response(hook.status)
                self.send_header("Location", f"http://127.0.0.1:{hook.port}/elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/heads"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


def settings(folder: Path, **audit: Any) -> Settings:
    return parse_settings({"audit": audit}, folder / "federator.toml")


class TestFile:
    def test_keeps_a_line_a_head(self, tmp_path: Path) -> None:
        anchor = FileAnchor(tmp_path / "a.jsonl")
        assert anchor.read() == []
        anchor.publish(HEAD)
        other = Head("other", 1, "x", 1.0)
        anchor.publish(other)
        assert anchor.read() == [HEAD, other]

    def test_a_line_that_broke_off_takes_no_other_with_it(self, tmp_path: Path) -> None:
        anchor = FileAnchor(tmp_path / "a.jsonl")
        anchor.publish(HEAD)
        with anchor.path.open("a") as file:
            file.write('{"chain": "cha')
        later = Head("chain", 8, "e" * 64, 2.5)
        anchor.publish(later)
        assert anchor.read() == [HEAD, later]

    def test_a_new_file_is_found_after_a_power_failure(self, tmp_path: Path, flushed: list[str]) -> None:
        anchor = FileAnchor(tmp_path / "a.jsonl")
        anchor.publish(HEAD)
        anchor.publish(replace(HEAD, seq=HEAD.seq + 1))
        assert flushed == [str(anchor.path), str(tmp_path), str(anchor.path)]

    def test_says_what_fails(self, tmp_path: Path) -> None:
        with pytest.raises(AnchorUnavailable, match="cannot be written"):
            FileAnchor(tmp_path / "none" / "a.jsonl").publish(HEAD)
        with pytest.raises(AnchorUnavailable, match="cannot be read"):
            FileAnchor(tmp_path).read()


class TestWebhook:
    def test_gets_the_head_and_the_token(self, hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOOK_TOKEN", "hunter2")
        anchor = configured_anchor(settings(tmp_path, anchor=hook.url, token="${HOOK_TOKEN}"))
        assert anchor is not None
        anchor.publish(HEAD)
        assert hook.got == [("Bearer hunter2", HEAD.to_json())]
        assert anchor.read() is None
        assert "hunter2" not in repr(anchor)

    @pytest.mark.parametrize("status", [302, 404, 500])
    def test_a_refusal_is_no_publication(self, hook: Hook, tmp_path: Path, status: int) -> None:
        hook.status = status
        anchor = configured_anchor(settings(tmp_path, anchor=hook.url))
        assert anchor is not None
        with pytest.raises(AnchorUnavailable, match=str(status)):
            anchor.publish(HEAD)
        assert len(hook.got) == 1


class TestObjects:
    def test_keep_an_object_a_head(self, s3_bucket: tuple[str, dict[str, str]], tmp_path: Path) -> None:
        bucket, options = s3_bucket
        anchor = build_anchor(settings(tmp_path, anchor=f"s3://{bucket}/audit/prod", storage=options).audit, where="x")
        assert isinstance(anchor, ObjectAnchor)
        assert anchor.read() == []
        for head in (HEAD, HEAD, Head("chain", 10, "e" * 64, 2.0), Head("other", 1, "f", 1.0)):
            anchor.publish(head)
        rows = [(head.chain, head.seq, head.digest) for head in anchor.read() or []]
        assert rows == [("chain", 7, "d" * 64), ("chain", 10, "e" * 64), ("other", 1, "f")]
        assert options["secret_access_key"] not in repr(anchor)

    def test_say_what_fails(self, s3_bucket: tuple[str, dict[str, str]], tmp_path: Path) -> None:
        anchor = build_anchor(settings(tmp_path, anchor="s3://no-such-bucket/x", storage=s3_bucket[1]).audit, where="x")
        assert anchor is not None
        with pytest.raises(AnchorUnavailable, match="NoSuchBucket"):
            anchor.publish(HEAD)


@pytest.fixture
def s3_bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, dict[str, str]]]:
    """A bucket of moto's server, with the storage options that reach it: secrets as references."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        monkeypatch.setenv("S3_SECRET", "hunter2")
        client = boto3.client(
            "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
        )
        client.create_bucket(Bucket="anchors")
        # An object of others, whose name only looks like that of a head.
        client.put_object(Bucket="anchors", Key="audit/prod/chain/²-of-others.json")
        options = {
            "endpoint": endpoint,
            "region": "us-east-1",
            "access_key_id": "${S3_SECRET}",
            "secret_access_key": "${S3_SECRET}",
        }
        yield "anchors", options
    finally:
        server.stop()


# Runs.


def federator(folder: Path, **audit: Any) -> Federator:
    return Federator.open(settings(folder, **audit))


def state(federator: Federator) -> str:
    return str(runs.list_recent_runs(federator.index, limit=1)[0].state)


def test_a_run_is_published_before_it_says_that_it_succeeded(key: Path, tmp_path: Path) -> None:
    made = federator(tmp_path, key=f"file:{key}", anchor=f"file://{tmp_path}/anchors.jsonl")
    assert made.apply([]).state == state(made) == "ok"
    proof = verify_log(
        made.index, keys=load_public_keys([key.with_name("audit.pem.pub")]), anchor=configured_anchor(made.settings)
    )
    assert (proof.finding, proof.tail, proof.unsealed) == (None, "proven", 0)
    assert proof.signed == proof.last


def test_an_anchor_that_fails_makes_a_run_partial_and_is_made_up_for(hook: Hook, tmp_path: Path) -> None:
    made = federator(tmp_path, anchor=hook.url)
    hook.status = 500
    result = made.apply([])
    assert (result.state, state(made)) == ("partial", "partial")
    assert "returned status 500" in result.errors["audit"]
    hook.status = 200
    hook.got.clear()
    assert made.apply([]).state == state(made) == "ok"
    with made.index.read() as connection:
        assert hook.got[-1][1]["seq"] == audit_log.get_chain_tip(connection)[0]


def test_an_anchor_that_fails_at_the_very_end_makes_a_run_partial(hook: Hook, tmp_path: Path) -> None:
    made = federator(tmp_path, anchor=hook.url)

    original = runs.finish_run

    def breaking(*args: Any, **options: Any) -> None:
        original(*args, **options)
        hook.status = 500

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "finish_run", breaking)
        assert made.apply([]).state == "partial"
    assert state(made) == "partial"


def test_a_key_that_cannot_be_read_is_loud_and_stops_nothing(tmp_path: Path) -> None:
    made = federator(tmp_path, key=f"file:{tmp_path}/none.pem")
    result = made.apply([])
    assert (result.state, state(made)) == ("partial", "partial")
    assert "[audit] key: not a readable file" in result.errors["audit"]
    assert audit_log.count_unsealed(made.index) == 0


# Keys and configuration.


def test_keygen_writes_a_pair_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "k.pem"
    made = generate_key_pair(path)
    assert (path.stat().st_mode & 0o777, (tmp_path / "k.pem.pub").stat().st_mode & 0o777 & ~0o022) == (0o600, 0o644)
    mine, known = load_signer(f"file:{path}", where="x"), load_public_keys([tmp_path / "k.pem.pub"])
    assert set(known) == {made} == {mine.id}
    assert is_valid_signature(b"x", made, mine.sign(b"x"), known)
    assert not is_valid_signature(b"y", made, mine.sign(b"x"), known)
    assert "PRIVATE" not in repr(mine)
    with pytest.raises(StateError, match="already exists"):
        generate_key_pair(path)


@pytest.mark.parametrize("content", ["", "hunter2", "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n"])
def test_what_is_no_key_is_refused_and_not_shown(content: str, tmp_path: Path) -> None:
    (tmp_path / "k.pem").write_text(content)
    with pytest.raises(ConfigError, match="Ed25519 private key") as caught:
        configured_signer(settings(tmp_path, key=f"file:{tmp_path}/k.pem"))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("audit", "message"),
    [
        ({"key": "MC4CAQAwBQ"}, "[audit] key: a secret must not stand in the file"),
        ({"token": "hunter2"}, "[audit] token: a secret must not stand in the file"),
        ({"storage": {"secret_access_key": "hunter2"}}, "[audit.storage] secret_access_key: a secret must not stand"),
        ({"anchor": "ftp://x/y"}, "[audit] anchor: 'ftp://x/y' is not allowed: it must be file:///path"),
        ({"anchor": "http://example.org/x"}, "[audit] anchor"),
        ({"anchor": "file://relative"}, "[audit] anchor"),
        ({"anchors": "x"}, "[audit] anchors: unknown key; allowed: key, anchor, token, storage"),
        ({"storage": {"colour": "x"}}, "[audit.storage.colour]"),
    ],
)
def test_mistakes_in_the_configuration(audit: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, **audit)
    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)
