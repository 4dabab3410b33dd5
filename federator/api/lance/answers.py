"""Answers of the Lance protocol as HTTP: official response models, absent fields left out, as the reference adapter writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Query, Response
from pydantic import BaseModel

from federator.connector import InvalidInput
from federator.connector.paging import name_of, page_token

#: entries of a page, where the caller does not say; also the most that one may ask for
MOST = 10_000

Limit = Annotated[int | None, Query(description=f"entries on a page, up to {MOST:,}")]
PageToken = Annotated[str | None, Query(max_length=16_000, description="`page_token` of the page before")]


def answered(model: BaseModel, headers: Mapping[str, str] | None = None) -> Response:
    """A response model as JSON."""
    content = model.model_dump_json(by_alias=True, exclude_none=True)
    return Response(content, media_type="application/json", headers=dict(headers or {}))


def wanted(limit: int | None, token: str | None) -> tuple[int, str]:
    """How many entries a page may have, and after which name it begins. Raises InvalidInput."""
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit must be 1 or more, and is {limit}")
    after = name_of(token) if token else ""
    if "\0" in after:
        raise InvalidInput("page_token is not one that this listing returned")
    return min(limit or MOST, MOST), after


def page(names: Sequence[str], size: int) -> tuple[list[str], str | None]:
    """Up to ``size`` of ``size + 1`` names, and the next page's token, None where that is all."""
    return list(names[:size]), page_token(names[size - 1]) if len(names) > size else None
