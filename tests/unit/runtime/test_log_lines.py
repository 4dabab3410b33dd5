"""Log lines: bound to their run, in one format, without secrets, also those of libraries."""

from __future__ import annotations

import io
import json
import logging
import pickle
import re
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import structlog

from federator import logs
from federator.connector import ConnectorSettings, ServiceUnavailable
from federator.runtime.redaction import MASKED, mask_value, redact, redact_data, register_secret

PLANTED = 'pl4nted "ümlaut"/+secret'


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def lines(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_what_the_http_server_does_at_its_start_is_no_news() -> None:
    out = io.StringIO()
    logs.configure(json=True, stream=out)
    logging.getLogger("uvicorn.error").info("Waiting for application startup.")
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    assert [line["event"] for line in lines(out)] == ["Invalid HTTP request received."]


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize(
    "name", ["uvicorn.error", "apscheduler.executors", "py4j.java_gateway", "urllib3.pool", "botocore.hooks"]
)
def test_libraries_write_through_it_and_their_secrets_are_masked(name: str, as_json: bool) -> None:
    register_secret(PLANTED)
    out = io.StringIO()
    logs.configure(json=as_json, level="DEBUG", stream=out)
    with logs.bound(run="r1", source="lake"):
        logging.getLogger(name).debug("signing in with %s", PLANTED)
        try:
            raise RuntimeError(PLANTED)
        except RuntimeError:
            logging.getLogger(name).exception("refused")
    written = out.getvalue()
    assert "signing in with" in written
    assert "RuntimeError" in written
    assert written.count(MASKED) >= 2
    assert "pl4nted" not in written
    assert "r1" in written
    assert "lake" in written
    if as_json:
        assert all((line["run"], line["source"], line["logger"]) == ("r1", "lake", name) for line in lines(out))


def test_libraries_are_quiet_below_a_warning_unless_all_is_wanted() -> None:
    out = io.StringIO()
    logs.configure(json=True, stream=out)
    logging.getLogger("apscheduler.scheduler").info("Added job")
    logging.getLogger("apscheduler.scheduler").warning("missed")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    first, second = lines(out)
    assert first["event"] == "missed"
    assert "DeprecationWarning" in str(second["event"])


def test_bound_fields_are_kept_in_another_thread() -> None:
    out = io.StringIO()
    logs.configure(json=True, stream=out)

    def work(number: int) -> None:
        with logs.bound(source=f"s{number}"):
            logs.get_logger("federator.test").info("step")

    with logs.bound(run="r1"), ThreadPoolExecutor(3) as pool:
        list(pool.map(logs.with_bound_context(work), range(3)))
    assert sorted((str(line["run"]), str(line["source"])) for line in lines(out)) == [("r1", "s0"), ("r1", "s1"), ("r1", "s2")]


def test_the_configuration_says_how_unless_the_environment_does(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    logs.configure(stream=out, default_format="console", default_level="ERROR")
    logs.get_logger("federator.test").warning("quiet")
    logs.get_logger("federator.test").error("loud")
    assert "loud" in out.getvalue()
    assert "quiet" not in out.getvalue()
    assert not out.getvalue().startswith("{")
    monkeypatch.setenv(logs.FORMAT, "json")
    monkeypatch.setenv(logs.LEVEL, "info")
    logs.configure(stream=out, default_format="console", default_level="ERROR")
    logs.get_logger("federator.test").info("now json")
    assert '"event": "now json"' in out.getvalue()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql+psycopg://ann:hunter2@db/x does not answer", "postgresql+psycopg://(masked)@db/x does not answer"),
        ("s3://AKIA:pass@word@bucket/a and https://t0ken@host", "s3://(masked)@bucket/a and https://(masked)@host"),
        (r'{"l": "s3://u:p\"w@b/t", "m": "a@b"}', '{"l": "s3://(masked)@b/t", "m": "a@b"}'),
        ("abfss://box@acct.dfs.core.windows.net/t", "abfss://box@acct.dfs.core.windows.net/t"),
        ("abfss://box:pw@acct.dfs.core.windows.net/t", "abfss://(masked)@acct.dfs.core.windows.net/t"),
        ("Authorization: Bearer abcdefgh12345", "Authorization: Bearer (masked)"),
        ("connect host=db password=hunter2 dbname=x", "connect host=db password=(masked) dbname=x"),
        ("https://h/p?client_secret=hunter2&x=1", "https://h/p?client_secret=(masked)&x=1"),
        ("s3://bucket/a@b is read; a token was given", "s3://bucket/a@b is read; a token was given"),
        ("lease 3 has the token 17", "lease 3 has the token 17"),
    ],
)
def test_texts_that_look_like_secrets_are_masked(text: str, expected: str) -> None:
    assert redact(text) == expected


def test_names_tell_in_data() -> None:
    data = {"storage.secret_access_key": "x", "nested": [{"apiToken": "y", "n": 1}], "region": "eu"}
    assert redact_data(data) == {
        "storage.secret_access_key": MASKED,
        "nested": [{"apiToken": MASKED, "n": 1}],
        "region": "eu",
    }


def test_resolved_secrets_are_remembered_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "resolved-by-a-source")
    monkeypatch.setenv("REGION", "eu-central-77")
    ConnectorSettings.from_properties("x", {"storage.secret_key": "${KEY}", "storage.region": "${REGION}"})
    assert redact("resolved-by-a-source in eu-central-77") == f"{MASKED} in eu-central-77"


def test_every_referenced_value_of_an_option_that_is_not_plain_is_a_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PHRASE", "pass-phrase-17")
    monkeypatch.setenv("TENANT", "tenant-number-17")
    (tmp_path / "cs").write_text("AccountName=a;Key=17\n")
    storage = {
        "storage.passphrase": "${PHRASE}", "storage.x-tenant": "${TENANT}", "storage.connection_string": f"file:{tmp_path}/cs",
    }  # fmt: skip
    settings = ConnectorSettings.from_properties("x", {**storage, "x.plain": "x-tenant"})
    assert settings.storage == {
        "passphrase": "pass-phrase-17", "x-tenant": "tenant-number-17", "connection_string": "AccountName=a;Key=17",
    }  # fmt: skip
    assert redact("pass-phrase-17, tenant-number-17, AccountName=a;Key=17") == f"{MASKED}, tenant-number-17, {MASKED}"


def test_a_secret_that_a_catalog_repeats_is_in_no_error() -> None:
    """Some servers answer with the headers that they were sent, and an error's text goes into the index, reports and answers."""
    register_secret("an-authorization-of-ours")
    register_secret("orders")
    error = ServiceUnavailable("lake: 403 {'Authorization': 'Bearer an-authorization-of-ours'} reading orders")
    assert error.message == f"lake: 403 {{'Authorization': 'Bearer {MASKED}'}} reading orders"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_many_secrets_are_prepared_for_redaction_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service with many sources resolves many secrets, one after the other, in each of its processes."""
    patterns: list[str] = []
    compile_pattern = re.compile
    monkeypatch.setattr(re, "compile", lambda text: patterns.append(text) or compile_pattern(text))
    secrets = [register_secret(f"{number:03d}-of-many-secrets") for number in range(300)]
    assert redact(f"no: {secrets[0]}; no: {secrets[-1]}") == f"no: {MASKED}; no: {MASKED}"
    assert mask_value(secrets[1]) == mask_value(f"key={secrets[1]}").removeprefix("key=") == MASKED
    assert len(patterns) <= 3
