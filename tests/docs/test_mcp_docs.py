"""docs/how-to/mcp.md: its tools are those of the server, its routes exist, and its limits and commands are true."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

from typer.main import get_command

from federator.api.mcp import requests
from federator.api.mcp.http import PATH
from federator.api.mcp.read_tools import ReadTools
from federator.api.mcp.write_tools import WriteTools
from federator.api.shares import ThreadShares
from federator.cli.app import app
from federator.data.spool import Spool
from federator.settings import parse_settings
from federator.store import open_index

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "mcp.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| `(\w+)` \| (.*) \| `(GET|POST) (\S+)` \|$", re.MULTILINE)


def test_the_page_lists_every_tool_and_says_which_write() -> None:
    nothing = cast(Any, None)
    tools = [*ReadTools(nothing, nothing).build(), *WriteTools(nothing, nothing).build()]
    listed = [(name, text.startswith("writes: "), method) for name, text, method, _ in _ROW.findall(PAGE)]
    assert listed == [
        (tool.name, not tool.annotations.read_only_hint, "GET" if tool.annotations.read_only_hint else "POST") for tool in tools
    ]


def test_the_routes_of_the_tools_exist(tmp_path: Path) -> None:
    index = open_index("sqlite:///federator.db", base=tmp_path)
    settings = parse_settings({}, tmp_path / "federator.toml")
    paths = requests.build_routes(index, settings, ThreadShares(), Spool(0)).openapi()["paths"]
    index.close()
    routes = {(method, path) for _, _, method, path in _ROW.findall(PAGE)}
    assert len(routes) == 12
    assert all(method.lower() in paths[path] for method, path in routes)


def test_the_configurations_are_those_of_this_version() -> None:
    claude, code = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    arguments = claude["mcpServers"]["federator"]["args"]
    assert cast(Any, get_command(app)).commands[arguments[0]].make_context("mcp", arguments[1:]).params["config"] == Path(
        arguments[2]
    )
    assert code["servers"]["federator"]["url"].endswith(f":8042{PATH}")


def test_the_limits_are_those_of_the_code() -> None:
    assert f"more than {requests.MAX_RESULT_BYTES:,} bytes" in PAGE
