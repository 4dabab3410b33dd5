"""Tools with the JSON schemas of their parameters and results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import TypeAdapter


def build_tool(function: Callable[..., Any], model: Any, annotations: ToolAnnotations) -> Tool:
    """Return a tool whose result has the schema of a response of the API. Parameters that it does not have are refused."""
    description = " ".join((function.__doc__ or "").split())
    tool = Tool.from_function(function, description=description, annotations=annotations, structured_output=False)
    tool.parameters["additionalProperties"] = False
    # The SDK would derive the schema of the Python types; the response has their JSON, such as times as texts.
    tool.fn_metadata.output_schema = TypeAdapter(model).json_schema(mode="serialization")
    return tool
