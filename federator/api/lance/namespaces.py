"""Namespace routes of the Lance protocol. Reads use the index; writes use the owning catalog.

The children of the root are the configured sources.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Header, Response
from lance_namespace import (
    CreateNamespaceRequest,
    CreateNamespaceResponse,
    DescribeNamespaceRequest,
    DescribeNamespaceResponse,
    DropNamespaceRequest,
    DropNamespaceResponse,
    ListNamespacesResponse,
    NamespaceExistsRequest,
)

from federator.api.bodies import BoundedRoute
from federator.api.dependencies import IndexDep, PrincipalDep, SettingsDep
from federator.api.lance.identifiers import Identifier, NamespaceId
from federator.api.lance.listings import list_child_namespaces
from federator.api.lance.lookup import VisibleNamespace, resolve_namespace, shown_properties
from federator.api.lance.responses import Limit, PageToken, json_response, parse_page_request, slice_page
from federator.api.lance.write_access import WriterDep, write_headers
from federator.api.principals import Role
from federator.connector import InvalidInput
from federator.lance.circles import DEPLOYMENT_IDENTITY, DEPLOYMENT_KEY
from federator.lance.facade_mapping import CONFIRM_HEADER
from federator.model import WHOLE
from federator.model.scopes import Scopes
from federator.settings import Settings
from federator.store import Index, deployment, identities

#: a Lance client sends it as ``context={"header.x-federator-confirm": "cascades"}``
Confirm = Annotated[
    str | None,
    Header(description="cascades: confirms that the catalog drops the namespace with all its tables"),
]

router = APIRouter(prefix="/v1/namespace/{id}", include_in_schema=False, route_class=BoundedRoute)


@router.get("/list")
def list_namespaces(
    id: NamespaceId, index: IndexDep, settings: SettingsDep, principal: PrincipalDep, page_token: PageToken = None, limit: Limit = None  # noqa: A002
) -> Response:  # fmt: skip
    """List the names of the children; of the root, the sources."""
    size, after = parse_page_request(limit, page_token, principal.scopes)
    names = id.read_existing(
        None, lambda path: list_child_namespaces(index, settings, principal.scopes, path, after=after, size=size)
    )
    page, token = slice_page(names, size, principal.scopes)
    return json_response(ListNamespacesResponse(namespaces=page, page_token=token))


@router.post("/describe")
def describe_namespace(
    id: NamespaceId, index: IndexDep, settings: SettingsDep, principal: PrincipalDep,  # noqa: A002
    body: Annotated[DescribeNamespaceRequest | None, Body()] = None,
) -> Response:  # fmt: skip
    """Return the properties of a namespace."""
    namespace = _get_namespace(id, body.id if body else None, index, settings, principal.scopes)
    properties = {**(namespace.properties if namespace else {}), **deployment_properties(index, namespace)}
    return json_response(DescribeNamespaceResponse(properties=properties))


def deployment_properties(index: Index, namespace: VisibleNamespace | None) -> dict[str, str]:
    """Return the property by which other deployments recognise this one at the root, and those that its sources are."""
    if namespace is not None and len(namespace.path) > 1:
        return {}
    with index.read() as connection:
        if namespace is None:
            return {DEPLOYMENT_KEY: deployment.read_fingerprint(connection)}
        known = identities.get_accepted(connection, namespace.source.name).get(WHOLE, ())
    deployments = [text.removeprefix(DEPLOYMENT_IDENTITY) for text in known if text.startswith(DEPLOYMENT_IDENTITY)]
    return {DEPLOYMENT_KEY: max(deployments)} if deployments else {}


@router.post("/exists")
def namespace_exists(
    id: NamespaceId, index: IndexDep, settings: SettingsDep, principal: PrincipalDep,  # noqa: A002
    body: Annotated[NamespaceExistsRequest | None, Body()] = None,
) -> Response:  # fmt: skip
    """Return 200 without a body if the namespace exists, else 404."""
    _get_namespace(id, body.id if body else None, index, settings, principal.scopes)
    return Response()


def _get_namespace(
    id: Identifier, body: list[str] | None, index: Index, settings: Settings, scopes: Scopes  # noqa: A002
) -> VisibleNamespace | None:  # fmt: skip
    """Return a namespace; None for the root. Raise NamespaceNotFound."""
    return id.read_existing(body, lambda path: resolve_namespace(index, settings, scopes, path) if path else None)


@router.post("/create")
def create_namespace(
    id: NamespaceId, write: WriterDep, body: Annotated[CreateNamespaceRequest | None, Body()] = None,  # noqa: A002
    x_federator_confirm: Confirm = None,
) -> Response:  # fmt: skip
    """Create a namespace in its catalog, with mode Create, ExistOk or Overwrite."""
    client_request = body or CreateNamespaceRequest()
    target = write.authorize(id.require_match(client_request.id))
    request = client_request.model_copy(update={"id": list(target.source_path), "context": confirmation(x_federator_confirm)})
    result = write.execute(
        target, "create_namespace", lambda facade: facade.create_namespace(request), is_table=False, request=client_request
    )
    properties = shown_properties(result.response.properties)
    return json_response(CreateNamespaceResponse(properties=properties), write_headers(result))


@router.post("/drop")
def drop_namespace(
    id: NamespaceId, write: WriterDep, body: Annotated[DropNamespaceRequest | None, Body()] = None,  # noqa: A002
    x_federator_confirm: Confirm = None,
) -> Response:  # fmt: skip
    """Drop an empty namespace from its catalog. Behavior Cascade also deregisters its tables and deletes no data."""
    client_request = body or DropNamespaceRequest()
    path = id.require_match(client_request.id)
    if not path:
        write.principal.require(Role.WRITER)
        raise InvalidInput("the root namespace cannot be dropped")
    target = write.authorize(path)
    request = client_request.model_copy(update={"id": list(target.source_path), "context": confirmation(x_federator_confirm)})
    result = write.execute(
        target, "drop_namespace", lambda facade: facade.drop_namespace(request), is_table=False, request=client_request
    )
    properties = shown_properties(result.response.properties)
    return json_response(DropNamespaceResponse(properties=properties), write_headers(result))


def confirmation(confirm: str | None) -> dict[str, str] | None:
    """Return the context of a facade request, from the federator's header."""
    return {f"header.{CONFIRM_HEADER}": confirm} if confirm else None
