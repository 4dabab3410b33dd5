"""Why an object is where it is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from federator.api import models as m
from federator.api.context import CallerOf, IndexOf, SettingsOf
from federator.api.paging import documented_304, printable, tagged
from federator.api.problems import documented
from federator.index.freshness import of_source
from federator.model import parse_key
from federator.sync.explaining import explain

router = APIRouter(prefix="/api/v1", tags=["explain"])


@router.get(
    "/explain/{id:path}", response_model=m.Explanation, responses={**documented_304(), **documented(400, 404)},
    summary="Explain an object",
)  # fmt: skip
def get_explanation(
    request: Request,
    index: IndexOf,
    settings: SettingsOf,
    caller: CallerOf,
    id: Annotated[str, Path(max_length=4000, description="its path from the root", examples=["aws$sales$orders"])],  # noqa: A002 - the name in the URL's template
) -> Response:
    """Evidence, mirrors, history and what would happen next, also of an object that is not there."""
    node = parse_key(printable(id, "id"))
    found = explain(settings, index, node, caller.scopes)
    return tagged(
        request, m.Explanation.model_validate({**found.to_json(), "freshness": of_source(index, node[0], caller.scopes)})
    )
