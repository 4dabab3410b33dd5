"""The principal of a request, and its sessions in browsers."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field

import federator
from federator.api.dependencies import IndexDep, PrincipalDep, SettingsDep
from federator.api.http_middleware import NO_STORE
from federator.api.models.base import ResponseModel
from federator.api.paging import etag_response, not_modified_docs
from federator.api.principals import Principal
from federator.api.problems import NotFound, problem_docs
from federator.api.sessions import BrowserSession, require_fresh_sign_in
from federator.store import sessions
from federator.store.field_types import Timestamp
from federator.store.tokens import token_digest

router = APIRouter(prefix="/api/v1/me")


class Me(ResponseModel):
    """The principal of a request."""

    name: Annotated[str, Field(description="actor in runs and audit events", examples=["oidc:anna"])]
    role: Annotated[str, Field(examples=["viewer"])]
    scopes: Annotated[list[str], Field(examples=[["lake_hive$sales"]])]
    version: Annotated[str, Field(description="version of the service", examples=["0.1.0"])]
    csrf_token: Annotated[
        str | None,
        Field(description="value of the header `X-CSRF-Token` in writes of a person who signed in with a browser; else null"),
    ] = None


class MySession(ResponseModel):
    """A session of the principal in a browser."""

    id: Annotated[str, Field(examples=["3b1f0c9a5d7e2468"])]
    created_at: Annotated[Timestamp, Field(description="time of the sign-in")]
    used_at: Annotated[Timestamp, Field(description="time of a request; up to a minute before the last one")]
    expires_at: Timestamp
    is_current: Annotated[bool, Field(description="the session of this request")]


class MySessions(ResponseModel):
    """The open sessions of the principal, the oldest first. Empty for a token."""

    sessions: list[MySession]


class RevokedSessions(ResponseModel):
    """The result of a revocation."""

    revoked: Annotated[int, Field(description="number of sessions that were ended", examples=[1])]


@router.get("", response_model=Me, responses={**not_modified_docs(), **problem_docs()}, summary="The principal of the request")
async def get_me(request: Request, principal: PrincipalDep) -> Response:
    """The name, role and scopes that the service has found for the credential of the request."""
    session: BrowserSession | None = request.scope.get("session")
    me = Me(
        name=principal.name, role=principal.role.name.lower(), scopes=list(principal.scopes.texts), version=federator.__version__,
        csrf_token=session.csrf_token if session is not None else None,
    )  # fmt: skip
    response = etag_response(request, me)
    response.headers.update(NO_STORE)
    return response


@router.get(
    "/sessions",
    response_model=MySessions,
    responses={**not_modified_docs(), **problem_docs()},
    summary="The principal's sessions",
)
def get_my_sessions(request: Request, index: IndexDep, settings: SettingsDep, principal: PrincipalDep) -> Response:
    """The open sessions of the signed-in person, in all browsers."""
    oidc, person = settings.serve.oidc, _person(principal)
    listed: list[sessions.OpenSession] = []
    if person is not None and oidc is not None and oidc.sign_in is not None:
        listed = sessions.list_sessions(index, now=time.time(), idle_timeout=oidc.sign_in.idle_timeout, name=person)
    current = _current_session_id(request)
    mine = [
        MySession(
            id=each.id,
            created_at=each.created_at,
            used_at=each.used_at,
            expires_at=each.expires_at,
            is_current=each.id == current,
        )
        for each in listed
    ]
    return etag_response(request, MySessions(sessions=mine))


@router.post("/sessions/{id}/revoke", responses=problem_docs(403, 404), summary="End a session of the principal")
def revoke_my_session(
    request: Request,
    index: IndexDep,
    principal: PrincipalDep,
    id: Annotated[str, Path(max_length=100, description="id of the session, or `all`", examples=["all"])],  # noqa: A002
) -> RevokedSessions:
    """End one session of the signed-in person, or all of them. It counts in every process within one second.

    To end others than the session of the request, the person must have entered credentials in the last five minutes (403 otherwise):
    `/auth/login?fresh=true` asks for them.
    """
    person, number = _person(principal), 0
    if person is not None:
        _require_fresh_sign_in(request, id)
        number = sessions.revoke_sessions(index, person, actor=principal.name, id=None if id == "all" else id)
    if not number and id != "all":
        raise NotFound(f"there is no session {id!r}", hint="GET /api/v1/me/sessions")
    return RevokedSessions(revoked=number)


def _require_fresh_sign_in(request: Request, session_id: str) -> None:
    """Raise PermissionDenied unless the session is that of the request, or its person has just entered credentials."""
    if session_id != _current_session_id(request):
        require_fresh_sign_in(request.scope.get("session"), "ending other sessions")


def _current_session_id(request: Request) -> str | None:
    """Return the id of the request's session. None for a request with a token."""
    session: BrowserSession | None = request.scope.get("session")
    return sessions.session_id(token_digest(session.secret)) if session is not None else None


def _person(principal: Principal) -> str | None:
    """Return the name of a signed-in person. None for other principals."""
    return principal.name.removeprefix("oidc:") if principal.name.startswith("oidc:") else None
