"""Requests of the API as values: method, route, parameters and response model. Both clients send them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

from federator.client import models

T = TypeVar("T", bound=models.Model)
RunKind = Literal["crawl", "plan", "sync", "apply", "verify"]
Severity = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request. ``route`` is the template of the OpenAPI document, ``path`` has the values of its parameters."""

    method: str
    route: str
    model: type[T]
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str | int | bool] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The route with its values. Every character of a value is part of it, also ``/``."""
        return self.route.format_map({name: quote(value, safe="") for name, value in self.path.items()})


def _without_none(**values: str | int | bool | None) -> dict[str, str | int | bool]:
    return {name: value for name, value in values.items() if value is not None}


def get_overview() -> Call[models.Overview]:
    return Call("GET", "/api/v1/overview", models.Overview)


def get_principal() -> Call[models.Me]:
    return Call("GET", "/api/v1/me", models.Me)


def list_children(path: str = "", *, depth: int = 1, limit: int = 500, cursor: str | None = None) -> Call[models.Tree]:
    return Call("GET", "/api/v1/tree", models.Tree, query=_without_none(path=path, depth=depth, limit=limit, cursor=cursor))


def get_table(id: str) -> Call[models.Table]:  # noqa: A002 - the name in the URL's template
    return Call("GET", "/api/v1/tables/{id}", models.Table, {"id": id})


def explain(id: str) -> Call[models.Explanation]:  # noqa: A002 - the name in the URL's template
    return Call("GET", "/api/v1/explain/{id}", models.Explanation, {"id": id})


def search(query: str, *, limit: int = 50, cursor: str | None = None) -> Call[models.SearchResults]:
    return Call("GET", "/api/v1/search", models.SearchResults, query=_without_none(q=query, limit=limit, cursor=cursor))


def list_drift(
    *, kind: str | None = None, severity: Severity | None = None, source: str | None = None, cursor: str | None = None
) -> Call[models.DriftPage]:
    query = _without_none(kind=kind, severity=severity, source=source, limit=500, cursor=cursor)
    return Call("GET", "/api/v1/drift", models.DriftPage, query=query)


def list_sources(*, cursor: str | None = None) -> Call[models.SourcePage]:
    return Call("GET", "/api/v1/sources", models.SourcePage, query=_without_none(limit=500, cursor=cursor))


def get_source(name: str) -> Call[models.Source]:
    return Call("GET", "/api/v1/sources/{name}", models.Source, {"name": name})


def list_mirrors(*, cursor: str | None = None) -> Call[models.MirrorPage]:
    return Call("GET", "/api/v1/mirrors", models.MirrorPage, query=_without_none(limit=500, cursor=cursor))


def get_mirror(name: str) -> Call[models.Mirror]:
    return Call("GET", "/api/v1/mirrors/{name}", models.Mirror, {"name": name})


def list_runs(*, limit: int = 20, cursor: str | None = None) -> Call[models.RunPage]:
    return Call("GET", "/api/v1/runs", models.RunPage, query=_without_none(limit=limit, cursor=cursor))


def get_run(id: str) -> Call[models.RunDetail]:  # noqa: A002 - the name in the URL's template
    return Call("GET", "/api/v1/runs/{id}", models.RunDetail, {"id": id})


def request_run(
    kind: RunKind, *, sources: Sequence[str] = (), mirrors: Sequence[str] = (), plans: Sequence[str] = (),
    tables: Sequence[str] = (), full: bool = False,
) -> Call[models.Request]:  # fmt: skip
    body = {
        "kind": kind, "sources": [*sources], "mirrors": [*mirrors], "plans": [*plans], "tables": [*tables], "full": full,
    }  # fmt: skip
    return Call("POST", "/api/v1/runs", models.Request, body=body)


def cancel_run(id: str) -> Call[models.Request]:  # noqa: A002 - the name in the URL's template
    return Call("POST", "/api/v1/runs/{id}/cancel", models.Request, {"id": id})


def get_request(id: int) -> Call[models.Request]:  # noqa: A002 - the name in the URL's template
    return Call("GET", "/api/v1/requests/{id}", models.Request, {"id": str(id)})


def list_plans(
    *, mirror: str | None = None, state: str | None = None, run: str | None = None, digest: str | None = None, limit: int = 20,
    cursor: str | None = None,
) -> Call[models.PlanPage]:  # fmt: skip
    query = _without_none(mirror=mirror, state=state, run=run, digest=digest, limit=limit, cursor=cursor)
    return Call("GET", "/api/v1/plans", models.PlanPage, query=query)


def get_plan(digest: str) -> Call[models.PlanView]:
    return Call("GET", "/api/v1/plans/{digest}", models.PlanView, {"digest": digest})


def approve_plan(digest: str, comment: str | None = None, *, if_match: str | None = None) -> Call[models.PlanView]:
    return _decide("/api/v1/plans/{digest}/approve", digest, comment, if_match)


def reject_plan(digest: str, comment: str | None = None, *, if_match: str | None = None) -> Call[models.PlanView]:
    return _decide("/api/v1/plans/{digest}/reject", digest, comment, if_match)


def _decide(route: str, digest: str, comment: str | None, if_match: str | None) -> Call[models.PlanView]:
    headers = {"If-Match": f'"{if_match or digest}"'}
    return Call("POST", route, models.PlanView, {"digest": digest}, headers=headers, body={"comment": comment})


def apply_plan(digest: str) -> Call[models.ApplyRequested]:
    return Call("POST", "/api/v1/plans/{digest}/apply", models.ApplyRequested, {"digest": digest})
