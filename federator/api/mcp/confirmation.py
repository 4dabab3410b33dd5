"""The question to the person at the client, before a tool writes (MCP elicitation).

A language model chooses the arguments of a call, and the client asks its user: so no text that a model has read approves a plan.
"""

from __future__ import annotations

from typing import Any

from mcp.server.elicitation import AcceptedElicitation, render_elicitation_schema
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import is_version_at_least
from pydantic import BaseModel, Field, StrictBool, ValidationError

_KEY = "confirmation"
# From this version of the protocol on, a question is a result of the call, and the client calls again with the answer.
_QUESTION_AS_RESULT = "2026-07-28"
_UNABLE = (
    "this tool needs the confirmation of a person, and the client cannot ask one (MCP elicitation)\n"
    "hint: use a client with elicitation (over HTTP with protocol version 2026-07-28), or the command line: {command}"
)


class Confirmation(BaseModel):
    """The form that the client shows to its user."""

    confirm: StrictBool = Field(description="yes: do it; no: change nothing")


async def ask(context: Context[Any, Any], question: str, *, command: str) -> InputRequiredResult | None:
    """Ask the person at the client. Return None if the person has confirmed, or the result that makes the client ask.

    ``command`` does the same on the command line. Raise ToolError if the person declined, or if the client cannot ask.
    """
    if not _can_ask(context):
        raise ToolError(_UNABLE.format(command=command))
    if is_version_at_least(context.protocol_version or "", _QUESTION_AS_RESULT):
        response = (context.input_responses or {}).get(_KEY)
        # An answer counts only together with the state of its question, which the SDK seals for this tool, arguments and principal.
        if response is None or context.request_state != question:
            form = ElicitRequestFormParams(message=question, requested_schema=render_elicitation_schema(Confirmation))
            return InputRequiredResult(input_requests={_KEY: ElicitRequest(params=form)}, request_state=question)
        is_confirmed = isinstance(response, ElicitResult) and response.action == "accept" and _is_yes(response.content)
    else:
        try:
            result = await context.elicit(question, Confirmation)
        except ValueError:
            raise ToolError("nothing was changed: the client's answer does not fit the question") from None
        is_confirmed = isinstance(result, AcceptedElicitation) and result.data.confirm
    if not is_confirmed:
        raise ToolError("nothing was changed: the person at the client did not confirm")
    return None


def _can_ask(context: Context[Any, Any]) -> bool:
    capabilities = context.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    # A capability without modes is that of the first versions, which only had forms.
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _is_yes(content: Any) -> bool:
    try:
        return Confirmation.model_validate(content).confirm
    except ValidationError:
        raise ToolError("nothing was changed: the client's answer does not fit the question") from None
