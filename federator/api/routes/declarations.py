"""Route to declare tables by location, for example orphans. The request creates one plan per source."""

from __future__ import annotations

from fastapi import APIRouter, Response

from federator.api.bodies import ApiRoute
from federator.api.dependencies import IndexDep, PrincipalDep, SettingsDep
from federator.api.host_paths import require_own_paths
from federator.api.models.requests import DeclareRequest
from federator.api.paging import require_storable
from federator.api.principals import Role
from federator.api.problems import problem_docs
from federator.api.queued_requests import queue_once
from federator.connector import InvalidInput
from federator.model import canonical_location, is_location
from federator.stages.declare import DeclareSpec, check_declare_spec
from federator.store import requests

router = APIRouter(prefix="/api/v1", route_class=ApiRoute)

#: locations times sources of one request: the worker has one run at a time, and inspects each location for each source
MAX_DECLARATIONS = 100


@router.post(
    "/declarations",
    status_code=202,
    max_body_size=1_000_000,
    response_model=requests.Request,
    responses=problem_docs(400, 403),
    summary="Request declarations",
)
def request_declarations(
    spec: DeclareRequest, index: IndexDep, settings: SettingsDep, principal: PrincipalDep, response: Response
) -> requests.Request:
    """Queue a request for at most 100 declarations: the worker inspects the locations and creates one plan per source. Nothing is
    written until a plan is applied. Needs the role writer and a scope that covers each source as a whole, because a plan names
    locations in its storage. A path of the service's host must be inside `root` or `allowed_bases` of each source, or below a storage
    root if the scope is `*`.

    When the request has a run id, `plans?run=` lists its plans. Declared tables belong to the principal: no mirror changes or removes
    them.
    """
    principal.require(Role.WRITER)
    into = list(dict.fromkeys(require_storable(name, "into") for name in spec.into))
    for name in into:
        principal.require(Role.WRITER, (name,))
    locations = list(dict.fromkeys(require_storable(location, "places") for location in spec.places))
    if (number := len(locations) * len(into)) > MAX_DECLARATIONS:
        raise InvalidInput(
            f"the request is for {number:,} declarations, and at most {MAX_DECLARATIONS} are allowed",
            hint="send several requests",
        )
    for location in locations:
        if not is_location(location):
            raise InvalidInput(f"{location!r} is not a location", hint="use an absolute path or a URI such as s3://bucket/key")
    # An alias may stand for a path.
    spellings = [*locations, *(canonical_location(location, settings.location_aliases) for location in locations)]
    roots = [root.location for root in settings.roots.values()] if principal.scopes.covers_all else []
    for name in into:
        require_own_paths(principal, settings.source(name), spellings, roots)
    template = require_storable(spec.name, "name") if spec.name is not None else None
    check_declare_spec(settings, DeclareSpec(locations, into, template))
    # Only a principal with the scope '*' may use the credentials of the storage roots.
    argument = {"places": locations, "into": into, "template": template, "roots": principal.scopes.covers_all}
    with index.write() as connection:
        request = queue_once(connection, "declare", argument, principal.name)
    response.headers["Location"] = f"/api/v1/requests/{request.id}"
    return request
