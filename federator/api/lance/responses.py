"""Responses and paging of the Lance protocol. Null fields are omitted, as in the reference adapter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Query, Response
from pydantic import BaseModel

from federator.api.paging import decode_cursor, encode_cursor
from federator.connector import InvalidInput
from federator.model.scopes import Scopes
from federator.runtime.redaction import mask_readable

#: number of entries on a page without ``limit``, and the maximum
MAX_PAGE_SIZE = 10_000
# One text for all listings of names: their tokens are bound to the scopes only.
_LISTING = "names"

Limit = Annotated[int | None, Query(description=f"maximum number of entries on a page, up to {MAX_PAGE_SIZE:,}")]
PageToken = Annotated[str | None, Query(max_length=16_000, description="`page_token` of the previous page")]


def json_response(
    model: BaseModel,
    headers: Mapping[str, str] | None = None,
    *,
    with_secrets: bool = False,
    vended: Mapping[str, str] | None = None,
) -> Response:
    """Return a response model as JSON. Secrets are masked, unless the principal may have them (``with_secrets``).

    ``vended`` are temporary credentials, which are added to the model's ``storage_options`` without masking.
    """
    content = model.model_dump_json(by_alias=True, exclude_none=True)
    content = content if with_secrets else mask_readable(content)
    if vended:
        fields = json.loads(content)
        content = json.dumps({**fields, "storage_options": {**fields["storage_options"], **vended}})
    return Response(content, media_type="application/json", headers=dict(headers or {}))


def parse_limit(limit: int | None) -> int:
    """Return the page size: ``limit`` or ``MAX_PAGE_SIZE``, the smaller one. Raise InvalidInput for a limit below 1."""
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit is {limit}, but must be 1 or more")
    return min(limit or MAX_PAGE_SIZE, MAX_PAGE_SIZE)


def parse_page_request(limit: int | None, token: str | None, scopes: Scopes) -> tuple[int, str]:
    """Return the page size, and the name after which the page begins: ``""`` for the first page.

    Raise InvalidInput for a limit below 1, and for a token that is malformed or has other scopes.
    """
    size = parse_limit(limit)
    try:
        return size, decode_cursor(token or None, _LISTING, scopes=scopes)[0]
    except InvalidInput:
        hint = "use the page_token of a previous response to the same principal"
        raise InvalidInput("page_token is malformed", hint=hint) from None


def slice_page(names: Sequence[str], size: int, scopes: Scopes) -> tuple[list[str], str | None]:
    """Return the first ``size`` names, and the token of the next page, which is bound to the scopes.

    The token is None on the last page: ``names`` must have more than ``size`` names if there are more.
    """
    token = encode_cursor(_LISTING, names[size - 1], scopes=scopes) if len(names) > size else None
    return list(names[:size]), token
