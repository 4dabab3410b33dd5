"""Route that explains why an object exists or is absent."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from federator.api.dependencies import IndexDep, PrincipalDep, SettingsDep
from federator.api.paging import etag_response, not_modified_docs, require_storable
from federator.api.problems import problem_docs
from federator.model import parse_path_key
from federator.views.explain import Explanation, explain_object

router = APIRouter(prefix="/api/v1")


@router.get(
    "/explain/{id:text}", response_model=Explanation, responses={**not_modified_docs(), **problem_docs(400, 404)},
    summary="Explain an object",
)  # fmt: skip
def get_explanation(
    request: Request,
    index: IndexDep,
    settings: SettingsDep,
    principal: PrincipalDep,
    id: Annotated[str, Path(max_length=4000, description="object id", examples=["aws$sales$orders"])],  # noqa: A002 - the name in the URL's template
) -> Response:
    """Evidence, roles in mirrors, history and the next planned action of an object, also of an absent one."""
    node = parse_path_key(require_storable(id, "id"))
    return etag_response(request, explain_object(settings, index, node, principal.scopes, principal.name))
