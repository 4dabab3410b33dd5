"""Namespaces of the Lance protocol: read from the index, written through the catalog that owns them.

The root's children are the configured sources; below each come its own levels.
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

from federator.api.access import Role
from federator.api.context import CallerOf, IndexOf, SettingsOf
from federator.api.lance.answers import Limit, PageToken, answered, page, wanted
from federator.api.lance.identifiers import NamespaceId
from federator.api.lance.listings import child_namespaces
from federator.api.lance.resolving import resolve_namespace
from federator.api.lance.writes import Writing, headers
from federator.connector import InvalidInput, is_secret_key
from federator.connector.answers import CONFIRM_HEADER, namespace_properties
from federator.model import NamespaceRecord

#: a Lance client sends it as ``context={"header.x-federator-confirm": "cascades"}``
Confirm = Annotated[
    str | None,
    Header(description="cascades: the caller knows that the catalog drops the namespace with every table in it"),
]

router = APIRouter(prefix="/v1/namespace/{id}", include_in_schema=False)


@router.get("/list")
def list_namespaces(
    id: NamespaceId, index: IndexOf, settings: SettingsOf, caller: CallerOf, page_token: PageToken = None, limit: Limit = None  # noqa: A002
) -> Response:  # fmt: skip
    """The children's own names; of the root, the sources."""
    size, after = wanted(limit, page_token)
    names = child_namespaces(index, settings, caller.scopes, id.path, after=after, size=size)
    shown, token = page(names, size)
    return answered(ListNamespacesResponse(namespaces=shown, page_token=token))


@router.post("/describe")
def describe_namespace(
    id: NamespaceId, index: IndexOf, settings: SettingsOf, caller: CallerOf,  # noqa: A002
    body: Annotated[DescribeNamespaceRequest | None, Body()] = None,
) -> Response:  # fmt: skip
    """Its properties."""
    path = id.same(body.id if body else None)
    if not path:
        return answered(DescribeNamespaceResponse(properties={}))
    return answered(
        DescribeNamespaceResponse(properties=_properties(resolve_namespace(index, settings, caller.scopes, path).record))
    )


@router.post("/exists")
def namespace_exists(
    id: NamespaceId, index: IndexOf, settings: SettingsOf, caller: CallerOf,  # noqa: A002
    body: Annotated[NamespaceExistsRequest | None, Body()] = None,
) -> Response:  # fmt: skip
    """200 without a body, or 404."""
    path = id.same(body.id if body else None)
    if path:
        resolve_namespace(index, settings, caller.scopes, path)
    return Response()


@router.post("/create")
def create_namespace(
    id: NamespaceId, write: Writing, body: Annotated[CreateNamespaceRequest | None, Body()] = None,  # noqa: A002
    x_federator_confirm: Confirm = None,
) -> Response:  # fmt: skip
    """Made by its catalog; mode Create, ExistOk or Overwrite."""
    asked = body or CreateNamespaceRequest()
    target = write.target(id.same(asked.id))
    request = asked.model_copy(update={"id": list(target.inner), "context": confirmation(x_federator_confirm)})
    made = write.carry_out(
        target, "create_namespace", lambda face: face.create_namespace(request), is_table=False, request=asked
    )
    properties = {key: text for key, text in (made.answer.properties or {}).items() if not is_secret_key(key)}
    return answered(CreateNamespaceResponse(properties=properties), headers(made))


@router.post("/drop")
def drop_namespace(
    id: NamespaceId, write: Writing, body: Annotated[DropNamespaceRequest | None, Body()] = None,  # noqa: A002
    x_federator_confirm: Confirm = None,
) -> Response:  # fmt: skip
    """Dropped by its catalog where it is empty; behavior Cascade deregisters what is declared inside, and deletes no data."""
    asked = body or DropNamespaceRequest()
    path = id.same(asked.id)
    if not path:
        write.caller.require(Role.WRITER)
        raise InvalidInput("the root namespace cannot be dropped")
    target = write.target(path)
    request = asked.model_copy(update={"id": list(target.inner), "context": confirmation(x_federator_confirm)})
    made = write.carry_out(target, "drop_namespace", lambda face: face.drop_namespace(request), is_table=False, request=asked)
    properties = {key: text for key, text in (made.answer.properties or {}).items() if not is_secret_key(key)}
    return answered(DropNamespaceResponse(properties=properties), headers(made))


def confirmation(confirm: str | None) -> dict[str, str] | None:
    """The context of a request to the facade, from the header of ours."""
    return {f"header.{CONFIRM_HEADER}": confirm} if confirm else None


def _properties(record: NamespaceRecord) -> dict[str, str]:
    return {key: text for key, text in namespace_properties(record).items() if not is_secret_key(key)}
