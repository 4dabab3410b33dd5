"""Hints for MCP clients: the tool in place of a command, and who runs a command that has no tool."""

from __future__ import annotations

import re

# Commands and their tools, replaced in this order. What a command's arguments say is in the message, too.
_TOOLS = (
    (r"federator search (?=shows )", "search_tables "),
    (r"federator search (\S+)", r"search_tables with query \1"),
    (r"federator (?:tree --view merged|tree|ls '[^']*')", "browse_tree"),
    (r"federator datasets", "search_tables"),
    (r"federator plans list --held", 'list_plans with state "held"'),
    (r"federator plans list", "list_plans"),
    (r"federator plans show", "describe_plan"),
    (r"federator plans? ?(?:-o FILE)?(?=$|;|,)", "request_plan"),
    (r"federator drift", "list_drift"),
    (r"federator runs lists the runs; ", ""),
)  # fmt: skip
_COMMAND = re.compile(r"(?:run:? )?federator [a-z]")


def translate_hint(hint: str | None) -> str | None:
    """Return a hint that names tools in place of commands. A command without a tool is for the service's operator."""
    if hint is None:
        return None
    for pattern, tool in _TOOLS:
        hint = re.sub(pattern, tool, hint)
    return f"for an operator of the service: {hint}" if _COMMAND.search(hint) else hint
