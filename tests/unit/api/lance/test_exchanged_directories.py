"""The owner of a local table exchanges its directory for a link to a hidden table, while the service checks and writes."""

from __future__ import annotations

import ctypes
import io
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from federator.connector import PermissionDenied
from federator.data.drop import drop_table_data, list_lost_tables
from federator.data.table_handle import TableHandle
from federator.lance.pinned_directory import pin_directory
from federator.testing.contract import unique_name
from tests.fixtures.index_content import fill, namespace
from tests.unit.api.lance.conftest import Service, served

_EXCHANGE = 2
MARKER = ".lance-deregistered"
ROWS = pa.table({"a": [1, 2, 3]})


@contextmanager
def exchanging(table: Path, link: Path) -> Iterator[None]:
    """Exchange two names all the time, as the owner of their directory may."""
    libc, ended = ctypes.CDLL(None, use_errno=True), threading.Event()

    def exchange() -> None:
        while not ended.wait(0.0005):
            libc.renameat2(-100, os.fsencode(table), -100, os.fsencode(link), _EXCHANGE)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "other").mkdir()
    for name in ("disk/race", "vault/secret"):
        lance.write_dataset(ROWS, str(tmp_path / f"{name}.lance"))
    (tmp_path / "other" / "link").symlink_to(tmp_path / "vault" / "secret.lance")
    sources = {name: {"impl": "dir", "root": str(tmp_path / name)} for name in ("disk", "vault")}
    with served(tmp_path, sources, bare=True) as running:
        for name in sources:
            running.crawl(name)
        yield running


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_no_write_and_no_marker_arrive_in_a_hidden_table(service: Service, tmp_path: Path) -> None:
    secret, race, link = tmp_path / "vault" / "secret.lance", tmp_path / "disk" / "race.lance", tmp_path / "other" / "link"
    before, body, answers = files(secret), io.BytesIO(), Counter[tuple[str, int]]()
    with pa.ipc.new_stream(body, ROWS.schema) as stream:
        stream.write_table(ROWS)
    table, caller = "/v1/table/disk%24race", "writer disk"
    with exchanging(race, link):
        for _ in range(40):
            answers["delete", service.post(f"{table}/delete", {"predicate": "a = 2"}, caller=caller).status_code] += 1
            answers["tag", service.post(f"{table}/tags/create", {"tag": "t", "version": 1}, caller=caller).status_code] += 1
            for mode in ("append", "overwrite"):
                sent = service.ask("POST", f"{table}/insert?mode={mode}", data=body.getvalue(), caller=caller)
                answers["insert", sent.status_code] += 1
            answers["deregister", service.post(f"{table}/deregister", caller="admin disk").status_code] += 1
            for directory in (race, link):
                with suppress(OSError):
                    if not directory.is_symlink():
                        (directory / MARKER).unlink()
    assert files(secret) == before
    assert lance.dataset(str(secret)).version == 1
    done = {action for (action, status) in answers if status == 200}
    assert {"delete", "insert"} <= done, f"the own table must be written at times: {answers}"
    assert any(status == 403 for _, status in answers), f"the link must be met at times: {answers}"


def test_a_table_whose_directory_is_new_is_not_created_through_a_link(service: Service, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    race, link = tmp_path / "disk" / "fresh.lance", tmp_path / "other" / "out"
    link.symlink_to(tmp_path / "out")
    body, answers = io.BytesIO(), Counter[int]()
    with pa.ipc.new_stream(body, ROWS.schema) as stream:
        stream.write_table(ROWS)
    race.mkdir()
    with exchanging(race, link):
        for _ in range(40):
            url = "/v1/table/disk%24fresh/create?mode=overwrite"
            answers[service.ask("POST", url, data=body.getvalue(), caller="writer disk").status_code] += 1
    assert list((tmp_path / "out").iterdir()) == [], answers


def test_a_drop_deletes_nothing_where_a_directory_above_leads_to_meanwhile(tmp_path: Path) -> None:
    """The name of the last directory is no link then, so that deleting it by its path would delete the hidden table."""
    for name in ("vault/secret", "swap/secret"):
        lance.write_dataset(ROWS, str(tmp_path / f"{name}.lance"))
    (tmp_path / "disk").mkdir()
    link, middle, secret = tmp_path / "swap" / "link", tmp_path / "disk" / "mid", tmp_path / "vault" / "secret.lance"
    link.symlink_to(tmp_path / "vault")
    sources = {
        "own": {"impl": "federator.testing:CONNECTOR", "store": unique_name("own"), "allow_drop": True},
        "vault": {"impl": "dir", "root": str(tmp_path / "vault")},
    }
    before, answers = files(secret), Counter[int]()
    with served(tmp_path, sources) as service:
        service.crawl("vault")
        fill(service.index, "own", namespace("own", "ns"))
        service.post("/v1/namespace/own%24ns/create")
        for number in range(12):
            shutil.rmtree(middle, ignore_errors=True)
            shutil.copytree(tmp_path / "swap" / "secret.lance", middle / "secret.lance")
            table, body = f"/v1/table/own%24ns%24t{number}", {"location": str(middle / "secret.lance")}
            assert service.post(f"{table}/register", body).status_code == 200
            with exchanging(middle, link):
                answers[service.post(f"{table}/drop", caller="admin own").status_code] += 1
            if middle.is_symlink():
                middle.unlink()
                link.rename(middle)
            link.unlink(missing_ok=True)
            link.symlink_to(tmp_path / "vault")
    assert files(secret) == before, answers


@pytest.mark.parametrize("opened", [True, False], ids=["after it was opened", "before it was opened"])
def test_a_directory_that_was_exchanged_since_its_check_is_not_deleted(tmp_path: Path, opened: bool) -> None:
    for name in ("vault/secret", "disk/mid/secret"):
        lance.write_dataset(ROWS, str(tmp_path / f"{name}.lance"))
    location, secret = str(tmp_path / "disk" / "mid" / "secret.lance"), tmp_path / "vault" / "secret.lance"
    before = files(secret)

    def exchange() -> None:
        (tmp_path / "disk" / "mid").rename(tmp_path / "disk" / "moved")
        (tmp_path / "disk" / "mid").symlink_to(tmp_path / "vault")

    with pin_directory(location) as pinned:
        handle = TableHandle(location, {}, pinned=pinned)
        resolved = list_lost_tables(handle, canonical=location, declared=[])["resolved"]
        exchange()
        if opened:
            drop_table_data(handle, resolved=resolved)
    if not opened:
        with pin_directory(location) as pinned, pytest.raises(PermissionDenied, match="another one"):
            drop_table_data(TableHandle(location, {}, pinned=pinned), resolved=resolved)
    assert files(secret) == before
    assert bool(files(tmp_path / "disk" / "moved")) is not opened
