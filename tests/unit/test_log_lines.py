"""Every line that leaves the process: bound to its run, in one format, without secrets, whoever wrote it."""

from __future__ import annotations

import io
import json
import logging
import pickle
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import structlog

from federator import logs
from federator.connector import ServiceUnavailable, Settings
from federator.connector.secrets import MASKED, redacted, redacted_data, remember

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


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize(
    "name", ["uvicorn.error", "apscheduler.executors", "py4j.java_gateway", "urllib3.pool", "botocore.hooks"]
)
def test_libraries_write_through_it_and_their_secrets_are_masked(name: str, as_json: bool) -> None:
    remember(PLANTED)
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


def test_what_is_bound_goes_along_to_another_thread() -> None:
    out = io.StringIO()
    logs.configure(json=True, stream=out)

    def work(number: int) -> None:
        with logs.bound(source=f"s{number}"):
            logs.get("federator.test").info("step")

    with logs.bound(run="r1"), ThreadPoolExecutor(3) as pool:
        list(pool.map(logs.carried(work), range(3)))
    assert sorted((str(line["run"]), str(line["source"])) for line in lines(out)) == [("r1", "s0"), ("r1", "s1"), ("r1", "s2")]


def test_the_configuration_says_how_unless_the_environment_does(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    logs.configure(stream=out, default_format="console", default_level="ERROR")
    logs.get("federator.test").warning("quiet")
    logs.get("federator.test").error("loud")
    assert "loud" in out.getvalue()
    assert "quiet" not in out.getvalue()
    assert not out.getvalue().startswith("{")
    monkeypatch.setenv(logs.FORMAT, "json")
    monkeypatch.setenv(logs.LEVEL, "info")
    logs.configure(stream=out, default_format="console", default_level="ERROR")
    logs.get("federator.test").info("now json")
    assert '"event": "now json"' in out.getvalue()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("postgresql+psycopg://ann:hunter2@db/x does not answer", "postgresql+psycopg://ann:(masked)@db/x does not answer"),
        ("Authorization: Bearer abcdefgh12345", "Authorization: Bearer (masked)"),
        ("connect host=db password=hunter2 dbname=x", "connect host=db password=(masked) dbname=x"),
        ("https://h/p?client_secret=hunter2&x=1", "https://h/p?client_secret=(masked)&x=1"),
        ("s3://bucket/a@b is read; a token was given", "s3://bucket/a@b is read; a token was given"),
        ("lease 3 has the token 17", "lease 3 has the token 17"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, kept: str) -> None:
    assert redacted(text) == kept


def test_names_tell_in_data() -> None:
    data = {"storage.secret_access_key": "x", "nested": [{"apiToken": "y", "n": 1}], "region": "eu"}
    assert redacted_data(data) == {
        "storage.secret_access_key": MASKED,
        "nested": [{"apiToken": MASKED, "n": 1}],
        "region": "eu",
    }


def test_resolved_secrets_are_remembered_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "resolved-by-a-source")
    monkeypatch.setenv("REGION", "eu-central-77")
    Settings.from_properties("x", {"storage.secret_key": "${KEY}", "storage.region": "${REGION}"})
    assert redacted("resolved-by-a-source in eu-central-77") == f"{MASKED} in eu-central-77"


def test_what_a_catalog_repeats_of_a_secret_is_in_no_error() -> None:
    """Some servers answer with the headers that they were sent, and an error's text goes into the index, reports and answers."""
    remember("an-authorization-of-ours")
    remember("orders")
    error = ServiceUnavailable("lake: 403 {'Authorization': 'Bearer an-authorization-of-ours'} reading orders")
    assert error.message == f"lake: 403 {{'Authorization': 'Bearer {MASKED}'}} reading orders"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
