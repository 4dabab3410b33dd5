"""What is asked over MCP: every tool and resource with all ids of the world, visible, hidden and absent, and with random arguments."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federator.api.mcp.http import PATH
from tests.fuzz_access.asking import VALUES, Probe
from tests.unit.api.test_access_hidden import IDS, LOCATIONS, WORDS
from tests.unit.api.worlds import MIRRORS, RUN_BOTH, RUN_HIDDEN, RUN_SEEN

SOURCES = ("lake", "copy", "spare", "vault", "nope")
RUNS = (RUN_SEEN, RUN_BOTH, RUN_HIDDEN, RUN_HIDDEN[:11], "run-1", "run-2", "1970-01-02", "-2d")
_VERSION = "2026-07-28"
# The client can ask its user: the questions of tools that write are part of what a principal is shown.
_META = {
    "io.modelcontextprotocol/protocolVersion": _VERSION,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


@dataclass(frozen=True)
class Tool:
    """A tool as its server describes it: the names of its parameters, and those with a list."""

    name: str
    parameters: Sequence[str]
    lists: frozenset[str]


def list_tools(described: Sequence[Mapping[str, Any]]) -> list[Tool]:
    """Return the tools of a response to ``tools/list``, ordered by name."""
    return sorted((_read_tool(each) for each in described), key=lambda tool: tool.name)


def _read_tool(described: Mapping[str, Any]) -> Tool:
    properties = described["inputSchema"].get("properties", {})
    lists = frozenset(name for name, schema in properties.items() if schema.get("type") == "array")
    return Tool(described["name"], sorted(properties), lists)


def ask_for_tools() -> Probe:
    """Return the request for the list of all tools."""
    return _request("tools/list", {})


def fixed_calls(plans: Mapping[str, str]) -> Iterator[Probe]:
    """Return calls of each tool, and reads of each resource, for everything in the world."""
    yield from (ask_for_tools(), _request("resources/templates/list", {}), _request("resources/list", {}))
    for key in filter(None, IDS):
        for tool in ("describe_table", "show_table_code", "explain_object"):
            yield _call(tool, {"id": key})
        yield _call("browse_tree", {"path": key, "depth": 3})
        yield _call("list_changes", {"since": RUN_SEEN, "path": key})
        yield _call("list_drift", {"about": key})
        yield from (_request("resources/read", {"uri": f"federator://{kind}/{key}"}) for kind in ("table", "namespace"))
    for word in (*WORDS, *LOCATIONS):
        yield from (_call("search_tables", {"query": word, "facets": facets}) for facets in (True, False))
    yield from (_call(tool, {"limit": 1}) for tool in ("list_sources", "list_plans", "list_drift", "browse_tree"))
    yield from (_call("list_drift", {"source": name}) for name in SOURCES)
    yield from (_call("list_changes", {"since": since, "until": until}) for since in RUNS for until in RUNS)
    yield from (_call("list_plans", {"mirror": name}) for name in (*MIRRORS, "nope"))
    for digest in (*plans.values(), "0" * 64):
        yield _call("describe_plan", {"digest": digest})
        # The question to the person names what would be approved. Nobody answers it.
        yield _call("approve_plan", {"digest": digest}, changes=True)
    yield from (_call("request_plan", {"mirrors": [name]}, changes=True) for name in (*MIRRORS, "nope"))


def draw_calls(tools: Sequence[Tool], number: int, rng: random.Random, cursors: Sequence[str]) -> Iterator[Probe]:
    """Return random calls: any tool, any of its parameters, any value, and cursors of other principals."""
    for _ in range(number):
        tool = rng.choice(tools)
        chosen = rng.sample(tool.parameters, min(len(tool.parameters), 1 + rng.randrange(3)))
        values = {name: rng.choice(cursors) if name == "cursor" and cursors else rng.choice(VALUES) for name in chosen}
        arguments = {name: [value] if name in tool.lists else value for name, value in values.items()}
        yield _call(tool.name, arguments, changes=tool.name in ("approve_plan", "request_plan"))


def _call(tool: str, arguments: Mapping[str, Any], *, changes: bool = False) -> Probe:
    return _request("tools/call", {"name": tool, "arguments": arguments}, changes=changes)


def _request(method: str, parameters: Mapping[str, Any], *, changes: bool = False) -> Probe:
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": _VERSION, "Mcp-Method": method}
    if name := parameters.get("name", parameters.get("uri")):
        headers["Mcp-Name"] = name
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**parameters, "_meta": _META}}
    return Probe("POST", PATH, body, headers, changes=changes)
