"""The last line of ``doctor``: the command to run next."""

from __future__ import annotations

import http.server
import json
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from federator.cli import health_checks
from federator.cli.doctor import _format_check
from federator.cli.health_checks import Check
from federator.cli.terminal import Column, fits
from federator.store import tables as t
from tests.unit.cli.conftest import Shell


def next_command(shell: Shell) -> str:
    last = shell.run("doctor").stderr.splitlines()[-1]
    assert last.startswith("next: federator -c ")
    return last.partition(f"{shell.folder}/federator.toml ")[2]


def test_a_new_user_is_led_from_the_file_to_the_plan(shell: Shell, filled_file: Path) -> None:
    assert next_command(shell) == "crawl"
    shell.index().close()
    assert next_command(shell) == "crawl"
    shutil.copy(filled_file, shell.folder)
    assert next_command(shell) == "plan"
    file = shell.folder / "federator.toml"
    file.write_text(file.read_text(encoding="utf-8").partition("[mirrors.")[0], encoding="utf-8")
    assert next_command(shell) == "tree"
    file.write_text("nonsense", encoding="utf-8")
    assert next_command(shell).startswith("doctor, after")
    file.unlink()
    assert next_command(shell) == "init"


def test_an_index_of_an_older_version_is_upgraded_next(filled: Shell) -> None:
    index = filled.index()
    with index.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0029'"))
    index.close()
    assert next_command(filled) == "db upgrade"


def test_a_source_whose_crawl_failed_is_crawled_next(filled: Shell) -> None:
    index = filled.index()
    with index.write() as connection:
        connection.execute(t.source.update().where(t.source.c.name == "copy").values(state="failed"))
    index.close()
    assert next_command(filled) == "crawl"


@pytest.mark.parametrize("tool", [".local/share/pipx/venvs", ".local/share/uv/tools"])
def test_the_table_fits_where_pipx_and_uv_install(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone-else")
    monkeypatch.setattr(sys, "prefix", f"/home/someone-else/{tool}/lance-federator")
    checks = [health_checks._check_python(), health_checks._check_java(), Check("source lake_hive", "ok", "hive2 responds")]
    rows = [[c.name, c.state, "0.1 s", _format_check(c)] for c in checks]
    assert f"~/{tool}/lance-federator" in rows[0][3]
    assert fits([Column("check"), Column("state"), Column("took", right=True), Column("found", wide=True)], rows, 80)


def test_a_failed_check_comes_before_any_other_command(shell: Shell) -> None:
    shell.store("lake").faults("fail:/=17")
    assert next_command(shell).startswith("doctor, after")


@pytest.fixture
def proxy_with_pages() -> Iterator[str]:
    """A server that answers each request with an error page, as proxies do."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def respond(self) -> None:
            page = b"<!DOCTYPE html>\n<html><body>" + b"<p>not here</p>\n" * 200 + b"</body></html>"
            self.send_response(404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        do_GET = do_POST = do_HEAD = respond

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_error_pages_of_other_servers_do_not_fill_the_output(shell: Shell, proxy_with_pages: str) -> None:
    sources: dict[str, dict[str, object]] = {
        "rest": {"uri": proxy_with_pages},
        "unity": {"endpoint": proxy_with_pages, "catalog": "c", "connect_timeout": 10000},
        "glue": {"endpoint": proxy_with_pages, "region": "us-east-1"},
    }
    lines = [f"[sources.{name}]\nimpl = {json.dumps(name)}" for name in sources]
    for number, values in enumerate(sources.values()):
        lines[number] += "".join(f"\n{key} = {json.dumps(value)}" for key, value in values.items())
    (shell.folder / "federator.toml").write_text("\n".join(lines), encoding="utf-8")
    aws = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_EC2_METADATA_DISABLED": "true"}
    checks = json.loads(shell.run("doctor", "--output", "json", **aws).stdout)["checks"]
    messages = {check["source"]: check["message"] for check in checks if check["name"].startswith("source ")}
    assert messages.keys() == sources.keys()
    for message in messages.values():
        assert message.endswith(": an HTML page"), message
    (hint,) = (check["hint"] for check in checks if check["source"] == "unity")
    assert "unity.connect_timeout_ms is in milliseconds" in hint, "a doubtful value is named although the check failed"


def test_a_server_that_does_not_respond_is_one_line_and_not_a_log(shell: Shell) -> None:
    text = '[sources.lance]\nimpl = "rest"\nrest.uri = "http://127.0.0.1:9"\n'
    (shell.folder / "federator.toml").write_text(text, encoding="utf-8")
    done = shell.run("doctor", "--output", "json")
    (check,) = (check for check in json.loads(done.stdout)["checks"] if check["source"])
    assert (
        check["message"]
        == "lance: listing the namespaces in the root: http://127.0.0.1:9 cannot be reached (Connection refused)"
    )
    assert check["hint"] == "check the address and the network"
    assert "stamina" not in done.stderr
    assert "warning" not in done.stderr.lower()
