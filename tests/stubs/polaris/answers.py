"""What Polaris answers: JSON in Java's compact form, and refusals as ``{"error": {"message", "type", "code"}}``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
_POLARIS = "polaris/v1/{prefix}/namespaces/{namespace}"

#: what GET /v1/config lists
ENDPOINTS = [
    "GET /v1/{prefix}/namespaces", f"GET {_NAMESPACE}", f"HEAD {_NAMESPACE}", "POST /v1/{prefix}/namespaces",
    f"POST {_NAMESPACE}/properties", f"DELETE {_NAMESPACE}", f"GET {_NAMESPACE}/tables", f"GET {_NAMESPACE}/tables/{{table}}",
    f"HEAD {_NAMESPACE}/tables/{{table}}", f"POST {_NAMESPACE}/tables", f"POST {_NAMESPACE}/tables/{{table}}",
    f"DELETE {_NAMESPACE}/tables/{{table}}", "POST /v1/{prefix}/tables/rename", f"POST {_NAMESPACE}/register",
    f"POST {_NAMESPACE}/tables/{{table}}/metrics", "POST /v1/{prefix}/transactions/commit", f"GET {_NAMESPACE}/views",
    f"GET {_NAMESPACE}/views/{{view}}", f"HEAD {_NAMESPACE}/views/{{view}}", f"POST {_NAMESPACE}/views",
    f"POST {_NAMESPACE}/views/{{view}}", f"DELETE {_NAMESPACE}/views/{{view}}", "POST /v1/{prefix}/views/rename",
    f"GET {_POLARIS}/generic-tables", f"POST {_POLARIS}/generic-tables",
    f"DELETE {_POLARIS}/generic-tables/{{generic-table}}", f"GET {_POLARIS}/generic-tables/{{generic-table}}",
    f"GET /{_POLARIS}/policies", f"POST /{_POLARIS}/policies", f"GET /{_POLARIS}/policies/{{policy-name}}",
    f"PUT /{_POLARIS}/policies/{{policy-name}}", f"DELETE /{_POLARIS}/policies/{{policy-name}}",
    f"PUT /{_POLARIS}/policies/{{policy-name}}/mappings", f"POST /{_POLARIS}/policies/{{policy-name}}/mappings",
    "GET /polaris/v1/{prefix}/applicable-policies",
]  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """A status with a JSON body, or with none."""

    status: int
    body: Any = None

    @property
    def text(self) -> str:
        return "" if self.body is None else json.dumps(self.body, separators=(",", ":"), ensure_ascii=False)


class Refusal(Exception):
    """An answer that is no success. Without a ``kind`` it has no body, as Quarkus itself refuses."""

    def __init__(self, status: int, kind: str = "", message: str = "") -> None:
        super().__init__(message)
        body = {"error": {"message": message, "type": kind, "code": status}} if kind else None
        self.answer = Answer(status, body)


def no_namespace(levels: tuple[str, ...]) -> Refusal:
    return Refusal(404, "NoSuchNamespaceException", f"Namespace does not exist: {dotted(levels)}")


def no_table(namespace: tuple[str, ...], name: str, kind: str = "Generic table") -> Refusal:
    return Refusal(404, "NoSuchTableException", f"{kind} does not exist: {dotted((*namespace, name))}")


def no_route() -> Refusal:
    return Refusal(404, "NotFoundException", "Unable to find matching target resource method")


def dotted(levels: tuple[str, ...]) -> str:
    """As Iceberg writes an identifier for a person."""
    return ".".join(levels) if levels else "''"
