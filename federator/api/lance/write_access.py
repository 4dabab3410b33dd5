"""Authorization and execution of direct writes through the protocol.

A route has a parameter ``WriterDep``. It calls ``authorize`` for each path that it writes, then ``execute``. Role and scopes are
checked before any lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel

from federator.api.dependencies import IndexDep, PrincipalDep, SettingsDep
from federator.api.host_paths import require_own_paths
from federator.api.lance.identifiers import Identifier
from federator.api.lance.lookup import canonicalize_path, get_any_table, require_table_levels
from federator.api.principals import Principal, Role
from federator.apply.direct_writes import DirectWriter, WriteRequest, WriteResult
from federator.apply.publication import AffectedObject
from federator.connector import InvalidInput, NamespaceNotFound, PermissionDenied, TableNotFound, Unsupported
from federator.model import Path, path_key
from federator.model.text import is_storable
from federator.settings import Settings, SourceSettings
from federator.store import Index

if TYPE_CHECKING:
    from federator.lance.facade import CatalogNamespace

T = TypeVar("T")

#: ``published``: the write is in the index; ``later``: pending publication, because a crawl holds the source's lease
INDEX_HEADER = "Federator-Index"
OPERATION_HEADER = "Federator-Operation"


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """An object that the principal may write: ``path`` starts at the tree root, ``source_path`` at the source's root."""

    source: SourceSettings
    path: Path

    @property
    def source_path(self) -> Path:
        return self.path[1:]


@dataclass(frozen=True, slots=True)
class AuthorizedWriter:
    """Direct writes of one principal."""

    index: Index
    settings: Settings
    principal: Principal
    writer: DirectWriter

    def authorize(self, path: Path, role: Role = Role.WRITER, *, is_table: bool = False) -> WriteTarget:
        """Check role and scopes, and return the write target.

        Raise PermissionDenied before any lookup. Then raise InvalidInput for a table's path with too few levels, Unsupported for the
        root and for sources, NamespaceNotFound for a source that is not configured.
        """
        self.principal.require(role)
        source = self.settings.sources.get(path[0]) if path else None
        # The names of a source that is not visible are not folded, because the message would show that it is configured.
        if source is not None and self.principal.scopes.is_visible(path[:1]):
            path = canonicalize_path(source, path)
        self.principal.require(role, path)
        if source is not None and is_table:
            require_table_levels(source, path)
        if len(path) == 1 or not path:
            raise Unsupported(
                f"{path_key(path) or 'the root'} is not in a catalog and cannot be changed",
                hint="change sources in the configuration file",
            )
        if source is None:
            raise NamespaceNotFound(f"there is no namespace {path_key(path[:1])}")
        return WriteTarget(source, path)

    def authorize_table(self, id: Identifier, body: Sequence[str] | None = None) -> WriteTarget:  # noqa: A002
        """Return the write target of a table's route. Raise like ``authorize`` and ``Identifier.require_match``.

        If the client encodes paths like forms, a ``+`` is a space, unless there is a table of the name with the plus.
        """
        if body or len(id.readings) == 1 or not id.is_form_encoded:
            return self.authorize(id.require_match(body), is_table=True)
        with_plus, with_space = id.readings
        target = self.authorize(with_space, is_table=True)
        try:
            get_any_table(self.index, self.settings, self.principal.scopes, with_plus)
        except TableNotFound:
            return target
        return self.authorize(id.require_match(None), is_table=True)

    def execute(
        self, target: WriteTarget, action: str, call: Callable[[CatalogNamespace], T], *,
        is_table: bool = True, also: Sequence[AffectedObject] = (), request: Mapping[str, Any] | BaseModel | None = None,
        locked: bool = False,
    ) -> WriteResult[T]:  # fmt: skip
        """Run one write through the facade of the owning catalog.

        ``also``: further objects that the write touches. ``locked``: the calling function holds the table's lock. Raise CatalogError,
        InvalidInput if the request contains text that cannot be stored, or PermissionDenied if the request has a location and the
        principal's scopes do not cover the source as a whole.
        """
        fields = (
            request.model_dump(exclude_none=True, exclude={"identity", "context"})
            if isinstance(request, BaseModel)
            else request
        )
        if not _is_storable(fields):
            raise InvalidInput("the request contains a NUL character or a lone surrogate, which is not allowed")
        self._check_location_allowed(target.source, fields or {})
        affected = (AffectedObject(target.source_path, is_table), *also)
        write_request = WriteRequest(
            self.principal.name, target.source.name, action, target.source_path, affected, fields or {}
        )
        return self.writer.write(write_request, call, locked=locked)

    def _check_location_allowed(self, source: SourceSettings, fields: Mapping[str, Any]) -> None:
        locations = list(_iter_requested_locations(fields))
        # The source's credentials reach all of its storage: with a free choice of location, a principal could read any table's data.
        if locations and not self.principal.is_allowed(Role.WRITER, (source.name,)):
            raise PermissionDenied(
                f"the scopes of {self.principal.name} do not cover {source.name} as a whole, so the request may not set a location",
                hint="omit the location: the catalog chooses it",
            )
        require_own_paths(self.principal, source, [text for text in locations if isinstance(text, str)])


def _iter_requested_locations(fields: Mapping[str, Any]) -> Iterator[Any]:
    for key, value in fields.items():
        if isinstance(value, Mapping):
            yield from _iter_requested_locations(value)
        elif value is not None and "location" in key.lower():
            yield value


def _is_storable(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_is_storable(part) for item in value.items() for part in item)
    if isinstance(value, list | tuple):
        return all(map(_is_storable, value))
    return not isinstance(value, str) or is_storable(value)


def write_headers(result: WriteResult[Any]) -> dict[str, str]:
    """Return the response headers of a write."""
    return {INDEX_HEADER: "published" if result.published else "later", OPERATION_HEADER: result.op_id}


def _get_writer(request: Request, index: IndexDep, settings: SettingsDep, principal: PrincipalDep) -> AuthorizedWriter:
    return AuthorizedWriter(index, settings, principal, request.app.state.writer)


WriterDep = Annotated[AuthorizedWriter, Depends(_get_writer)]
