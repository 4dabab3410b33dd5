"""The address of a service in the code that it shows, behind a proxy that replaces the Host header."""

from __future__ import annotations

from tests.fixtures.identity_provider import Browser, Provider
from tests.unit.api.sign_in_support import ORIGIN
from tests.unit.api.sign_in_support import browser as browser
from tests.unit.api.sign_in_support import provider as provider
from tests.unit.api.sign_in_support import running as running
from tests.unit.api.sign_in_support import service as service


def test_code_has_the_public_address_whatever_host_a_proxy_sends(browser: Browser, provider: Provider) -> None:
    browser.sign_in(provider)
    for headers in ({}, {"Host": "127.0.0.1:8042"}, {"Host": "evil.example"}):
        for snippet in browser.get("/api/v1/snippets/lake%24sales%24orders", headers=headers).json()["snippets"]:
            assert ORIGIN in snippet["code"]
            assert "http:" not in snippet["code"]
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"name": "show_table_code", "arguments": {"id": "lake$sales$orders"}, "_meta": meta}
    response = browser.ask(
        "POST", "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
        headers={
            **browser.csrf(), "Host": "127.0.0.1:8042", "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "show_table_code",
        },
    )  # fmt: skip
    assert ORIGIN in response.text
    assert "http:" not in response.text
