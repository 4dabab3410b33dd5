"""Declarations that a person asks for: physical tables, orphans for one, become a plan for each source."""

from __future__ import annotations

from fastapi import APIRouter, Response

from federator.api import models as m
from federator.api.access import Role
from federator.api.context import CallerOf, IndexOf, SettingsOf
from federator.api.paging import printable
from federator.api.problems import documented
from federator.connector import InvalidInput
from federator.index import requests
from federator.model import is_location
from federator.sync.declaring import Wanted, check

router = APIRouter(prefix="/api/v1", tags=["plans"])


@router.post(
    "/declarations", status_code=202, response_model=m.Requested, responses=documented(400, 403), summary="Ask for declarations"
)
def post_declarations(
    wanted: m.DeclareRequest, index: IndexOf, settings: SettingsOf, caller: CallerOf, response: Response
) -> m.Requested:
    """Asks the worker to open the places and to plan their declaration, by a plan for each source: nothing is written before that is
    applied. For a writer who sees each of the sources whole, since it says where in their storage something lies.

    Once the request names its run, `plans?run=` shows what was made of it. What is declared belongs to whoever asked: no mirror changes
    it or takes it away.
    """
    caller.require(Role.WRITER)
    into = list(dict.fromkeys(printable(name, "into") for name in wanted.into))
    for name in into:
        caller.require(Role.WRITER, (name,))
    places = [printable(place, "places") for place in wanted.places]
    for place in places:
        if not is_location(place):
            raise InvalidInput(f"{place!r} is no location", hint="an absolute path or a URI such as s3://bucket/key")
    template = printable(wanted.name, "name") if wanted.name is not None else None
    check(settings, Wanted(places, into, template))
    # The roots' credentials are nobody's whose scope is a part.
    argument = {"places": places, "into": into, "template": template, "roots": caller.scopes.everything}
    with index.write() as connection:
        asked = requests.add(connection, "declare", argument, actor=caller.name)
    response.headers["Location"] = f"/api/v1/requests/{asked.id}"
    return m.Requested.model_validate(asked)
