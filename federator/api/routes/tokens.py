"""Routes of the API tokens. They need the role admin and the scope '*'."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from federator import audit
from federator.api.bodies import ApiRoute
from federator.api.dependencies import Cursor, IndexDep, Limit, PrincipalDep
from federator.api.http_middleware import NO_STORE
from federator.api.models.tokens import CreatedToken, TokenPage, TokenRequest, TokenView
from federator.api.paging import etag_response, not_modified_docs, page_by_name, require_storable
from federator.api.principals import Role
from federator.api.problems import NotFound, problem_docs
from federator.api.sessions import BrowserSession, require_fresh_sign_in
from federator.connector import InvalidInput
from federator.model.scopes import Scopes
from federator.store import tokens

router = APIRouter(prefix="/api/v1/tokens", route_class=ApiRoute)

_DAY_SECONDS = 86_400.0


@router.get("", response_model=TokenPage, responses={**not_modified_docs(), **problem_docs(400, 403)}, summary="API tokens")
def get_tokens(
    request: Request, index: IndexDep, principal: PrincipalDep, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """A page of the tokens by name, also of expired and revoked ones. Secrets are not stored, so they are never shown."""
    principal.require_full_scope(Role.ADMIN)
    now, by_name = time.time(), {token.name: token for token in tokens.list_tokens(index)}
    names, end = page_by_name(by_name, "tokens", cursor, limit, scopes=principal.scopes)
    return etag_response(request, TokenPage(tokens=[TokenView.from_token(by_name[name], now) for name in names], next=end))


@router.post(
    "", status_code=201, response_model=CreatedToken, responses=problem_docs(400, 403, 409), summary="Create an API token"
)
def create_token(
    request: Request, spec: TokenRequest, index: IndexDep, principal: PrincipalDep, response: Response
) -> CreatedToken:
    """Create a token and return its secret, which is not stored and cannot be shown again.

    A name can be used only once. The creation is an audit event. A signed-in person must have entered credentials in the last five
    minutes (403 otherwise): `/auth/login?fresh=true` asks for them. Otherwise a stolen session could live on in a token.
    """
    principal.require_full_scope(Role.ADMIN)
    session: BrowserSession | None = request.scope.get("session")
    if session is not None:
        require_fresh_sign_in(session, "creating a token")
    tokens.require_valid_name(spec.name)
    try:
        scopes = Scopes.parse(spec.scopes)
    except ValueError as error:
        raise InvalidInput(f"scopes: {error}") from None
    lifetime = spec.lifetime_days * _DAY_SECONDS if spec.lifetime_days is not None else None
    secret, token = tokens.create_token(
        index, spec.name, role=spec.role, scopes=scopes, lifetime=lifetime, actor=principal.name
    )  # fmt: skip
    audit.seal_pending(index)
    response.headers.update(NO_STORE)
    return CreatedToken(token=secret, **token.to_json(time.time()))


@router.post(
    "/{name}/revoke", response_model=TokenView, responses=problem_docs(400, 403, 404, 409), summary="Revoke an API token"
)
def revoke_token(
    index: IndexDep,
    principal: PrincipalDep,
    name: Annotated[str, Path(max_length=100, description="name of the token", examples=["ci"])],
) -> TokenView:
    """Revoke a token permanently. It takes effect in every process within one second, and is an audit event. What it has
    queued for the worker is cancelled; a run that has started continues."""
    principal.require_full_scope(Role.ADMIN)
    if require_storable(name, "name") not in {token.name for token in tokens.list_tokens(index)}:
        raise NotFound(f"there is no token {name!r}", hint="GET /api/v1/tokens")
    revoked = tokens.revoke_token(index, name, actor=principal.name)
    audit.seal_pending(index)
    return TokenView.from_token(revoked, time.time())
