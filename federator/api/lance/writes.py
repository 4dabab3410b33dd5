"""What every write of the protocol shares: role and scope before anything else, then the owning catalog, then the index.

A route takes ``Writing`` and calls ``target`` for each path that it will write, then ``carry_out``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel

from federator.api.access import Caller, Role
from federator.api.context import CallerOf, IndexOf, SettingsOf
from federator.api.lance.resolving import canonical
from federator.connector import NamespaceNotFound, PermissionDenied, Unsupported
from federator.index import Index
from federator.model import Path, path_key
from federator.settings import Settings, SourceSettings
from federator.sync.writing import Order, Touched, Writer, Written

if TYPE_CHECKING:
    from federator.connector.namespace import CatalogNamespace

T = TypeVar("T")

#: says whether the index knows of a write by now: ``published``, or ``later`` while a crawl holds its source
INDEX_HEADER = "Federator-Index"
OPERATION_HEADER = "Federator-Operation"


@dataclass(frozen=True, slots=True)
class Target:
    """What a caller may write: ``path`` is from the tree's root, ``inner`` from the source's."""

    source: SourceSettings
    path: Path

    @property
    def inner(self) -> Path:
        return self.path[1:]


@dataclass(frozen=True, slots=True)
class Write:
    """One caller's way to write."""

    index: Index
    settings: Settings
    caller: Caller
    writer: Writer

    def target(self, path: Path, role: Role = Role.WRITER) -> Target:
        """Checks role and scope before anything is looked up. Raises PermissionDenied, then NamespaceNotFound for a source that is not
        configured, Unsupported for the root and the sources themselves."""
        self.caller.require(role)
        source = self.settings.sources.get(path[0]) if path else None
        path = canonical(source, path) if source is not None else path
        self.caller.require(role, path)
        if len(path) == 1 or not path:
            raise Unsupported(
                f"{path_key(path) or 'the root'} is no catalog's to change", hint="sources are made in the configuration file"
            )
        if source is None:
            raise NamespaceNotFound(f"there is no namespace {path_key(path[:1])}")
        return Target(source, path)

    def carry_out(
        self, target: Target, action: str, call: Callable[[CatalogNamespace], T], *,
        is_table: bool = True, also: Sequence[Touched] = (), request: Mapping[str, Any] | BaseModel | None = None,
        locked: bool = False,
    ) -> Written[T]:  # fmt: skip
        """Makes one write through the owning catalog's face; ``also`` are further objects that it touches.
        ``locked``: the caller holds the table's lock. Raises CatalogError,
        PermissionDenied where it says a location and the caller may not see all of the source."""
        asked = (
            request.model_dump(exclude_none=True, exclude={"identity", "context"})
            if isinstance(request, BaseModel)
            else request
        )
        self._keep_to_own_places(target.source, asked or {})
        touched = (Touched(target.inner, is_table), *also)
        order = Order(self.caller.name, target.source.name, action, target.inner, touched, asked or {})
        return self.writer.write(order, call, locked=locked)

    def _keep_to_own_places(self, source: SourceSettings, asked: Mapping[str, Any]) -> None:
        # A source's credentials reach all of its storage: through a declaration of one's own, any table's data could be read.
        if _says_location(asked) and not self.caller.may(Role.WRITER, (source.name,)):
            raise PermissionDenied(
                f"{self.caller.name} sees a part of {source.name}, and may not say where in its storage something lies",
                hint="leave the location to the catalog",
            )


def _says_location(asked: Mapping[str, Any]) -> bool:
    return any(
        _says_location(value) if isinstance(value, Mapping) else value is not None and "location" in key.lower()
        for key, value in asked.items()
    )


def headers(written: Written[Any]) -> dict[str, str]:
    """What an answer says of a write besides its body."""
    return {INDEX_HEADER: "published" if written.published else "later", OPERATION_HEADER: written.op_id}


def _writing(request: Request, index: IndexOf, settings: SettingsOf, caller: CallerOf) -> Write:
    return Write(index, settings, caller, request.app.state.writer)


Writing = Annotated[Write, Depends(_writing)]
