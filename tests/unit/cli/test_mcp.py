"""``federator mcp``: the SDK's own client starts the command and talks to it on stdin and stdout."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from federator.api.app import create_app
from federator.planning.holds import Hold
from federator.planning.plan import Plan
from federator.settings import load_settings
from federator.store import audit_log, open_index, plans
from tests.unit.api.mcp_support import Person, text_of
from tests.unit.cli.conftest import Shell
from tests.unit.cli.conftest import fill as fill
from tests.unit.cli.conftest import filled as filled
from tests.unit.cli.conftest import shell as shell

MAIN = ["-c", "from federator.cli import main; main()"]
INITIALIZE = {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"},
}  # fmt: skip


def talk(filled: Shell, conversation: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    """Run a conversation with a server of its own; its stderr is in the file ``stderr``."""
    server = StdioServerParameters(command=sys.executable, args=[*MAIN, "mcp"], env=dict(os.environ), cwd=filled.folder)

    async def run() -> Any:
        with (filled.folder / "stderr").open("w", encoding="utf-8") as errors:
            async with Client(stdio_client(server, errlog=errors), **options) as client:
                return await conversation(client)

    return asyncio.run(run())


def ask_api(filled: Shell, path: str) -> Any:
    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(load_settings(filled.folder / "federator.toml")))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8042") as client:
            return await client.get(path)

    return asyncio.run(get()).json()


def add_held_plan(folder: Path) -> str:
    plan = Plan("nightly", "d", 1, 1, holds=(Hold("max_delete_percent", "too much"),))
    index = open_index("sqlite:///federator.db", base=folder)
    with index.write() as connection:
        plans.save_plan(
            connection, digest=plan.digest, mirror="nightly", run_id="r", state="held", body=json.dumps(plan.to_json())
        )
    index.close()
    return plan.digest


def test_the_views_are_those_of_the_api(filled: Shell) -> None:
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("search_tables", {"query": "orders"}, "/api/v1/search?q=orders&limit=25"),
        ("browse_tree", {"path": "lake$odd"}, "/api/v1/tree?path=lake%24odd&limit=25"),
        ("describe_table", {"id": "lake$sales$orders"}, "/api/v1/tables/lake%24sales%24orders"),
        ("show_table_code", {"id": "lake$sales$orders"}, "/api/v1/snippets/lake%24sales%24orders"),
        ("explain_object", {"id": "lake$sales$orders"}, "/api/v1/explain/lake%24sales%24orders"),
        ("list_drift", {}, "/api/v1/drift?limit=25"),
        ("list_sources", {}, "/api/v1/sources?limit=100"),
    ]

    async def conversation(client: Client) -> list[Any]:
        return [(await client.call_tool(tool, arguments)).structured_content for tool, arguments, _ in calls]

    shown = talk(filled, conversation)
    assert shown == [ask_api(filled, path) for _, _, path in calls]
    assert [node["id"] for node in shown[0]["nodes"]] == ["copy$sales$orders", "lake$sales$orders"]
    assert len(shown[1]["nodes"]) > 5
    assert "Traceback" not in (filled.folder / "stderr").read_text(encoding="utf-8")


# Clients of today initialize a session; newer ones do not.
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_person_decides_on_a_plan(filled: Shell, mode: str) -> None:
    digest = add_held_plan(filled.folder)
    person = Person("decline")

    async def decide(client: Client) -> tuple[Any, Any]:
        declined = await client.call_tool("approve_plan", {"digest": digest})
        assert filled.json("plans", "show", digest)["state"] == "held"
        person.action, person.content = "accept", {"confirm": True}
        return declined, await client.call_tool("approve_plan", {"digest": digest})

    declined, approved = talk(filled, decide, mode=mode, elicitation_callback=person)
    assert text_of(declined) == "nothing was changed: the person at the client did not confirm"
    assert approved.structured_content["state"] == "approved"
    assert len(person.questions) == 2
    shown = filled.json("plans", "show", digest)
    assert (shown["state"], shown["decided_by"]) == ("approved", getpass.getuser())
    index = open_index("sqlite:///federator.db", base=filled.folder)
    events = [event for event in audit_log.list_events(index) if event.kind == "plan_approved"]
    index.close()
    assert [event.actor for event in events] == [getpass.getuser()]


def test_a_client_that_cannot_ask_is_refused(filled: Shell) -> None:
    digest = add_held_plan(filled.folder)
    result = talk(filled, lambda client: client.call_tool("approve_plan", {"digest": digest}), mode="legacy")
    assert text_of(result).startswith("this tool needs the confirmation of a person, and the client cannot ask one")
    assert text_of(result).endswith(f"federator plans approve {digest[:12]}")
    assert filled.json("plans", "show", digest)["state"] == "held"


def test_stdout_has_nothing_but_messages_of_the_protocol(filled: Shell) -> None:
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "describe_table", "arguments": {"id": "lake$x"}},
        },
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "list_sources", "arguments": {}}},
    ]
    process = subprocess.Popen(
        [sys.executable, *MAIN, "mcp"], cwd=filled.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "FEDERATOR_LOG_LEVEL": "debug"},
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
    process.stdin.flush()
    messages = [json.loads(process.stdout.readline()) for _ in range(3)]
    rest, errors = process.communicate(timeout=60)
    assert (rest, process.returncode) == ("", 0)
    assert all(message["jsonrpc"] == "2.0" for message in messages)
    results = {message["id"]: message["result"] for message in messages}
    assert (results[2]["isError"], results[3]["isError"]) == (True, False)
    # The logs of the SDK are there, on the other stream.
    assert "describe_table" in errors


def test_every_request_has_its_response_when_stdin_ends(filled: Shell) -> None:
    calls = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "list_sources", "arguments": {}}}
        for number in range(2, 12)
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "not json", '{"jsonrpc": "1.0"}', "", *map(json.dumps, calls),
        '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [2]}}',
        *(f'{{"jsonrpc": "2.0", "id": {number}, "method": "tools/list"}}' for number in ("1e400", "1.5", "null", "[1]")),
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, *MAIN, "mcp"],
        cwd=filled.folder,
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(answer["id"] for answer in answers if "result" in answer) == list(range(1, 12))
    refused = [(answer["id"], answer["error"]["code"]) for answer in answers if "error" in answer]
    assert refused == [(None, -32700), *[(None, -32600)] * 5]
    assert done.returncode == 0, done.stderr


def test_an_interrupt_ends_the_command_without_another_message(filled: Shell) -> None:
    with subprocess.Popen(
        [sys.executable, *MAIN, "mcp"], cwd=filled.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == -signal.SIGINT
        assert "Traceback" not in process.stderr.read()


def test_a_person_at_a_terminal_reads_what_it_waits_for(filled: Shell) -> None:
    terminal, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, *MAIN, "mcp"],
        cwd=filled.folder,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(theirs)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("waiting for a client's messages on stdin")
        process.send_signal(signal.SIGINT)
    os.close(terminal)


def test_without_an_index_the_command_says_what_to_do(shell: Shell) -> None:
    ran = shell.start("mcp")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "there is no index yet" in ran.stderr
    assert "federator crawl" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_sdk_is_imported_by_this_command_only(shell: Shell) -> None:
    script = "import sys, federator.cli.app, federator.api.app; sys.exit('mcp' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")
