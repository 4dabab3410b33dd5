"""Why an object is where it is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from federator.api import models as m
from federator.api.context import CallerOf, IndexOf, SettingsOf
from federator.api.paging import printable
from federator.api.problems import documented
from federator.index.freshness import of_source
from federator.model import parse_key
from federator.sync.explaining import explain

router = APIRouter(prefix="/api/v1", tags=["explain"])


@router.get("/explain/{id:path}", response_model=m.Explanation, responses=documented(400, 404), summary="Explain an object")
def get_explanation(
    index: IndexOf,
    settings: SettingsOf,
    caller: CallerOf,
    id: Annotated[str, Path(max_length=4000, examples=["aws$sales$orders"])],  # noqa: A002 - the name in the URL's template
) -> m.Explanation:
    """Evidence, mirrors, history and what would happen next, also of an object that is not there."""
    node = parse_key(printable(id, "id"))
    found = explain(settings, index, node, caller.scopes)
    return m.Explanation.model_validate({**found.to_json(), "freshness": of_source(index, node[0], caller.scopes)})
