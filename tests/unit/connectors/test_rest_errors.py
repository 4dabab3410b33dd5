"""Mapping of the errors of a Lance REST server: by the protocol's code, else by the status."""

from __future__ import annotations

import json

import lance_namespace
import pytest

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    PermissionDenied,
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
    Throttled,
    Unauthenticated,
    Unsupported,
)
from federator_connectors._http.response import HttpResponse
from federator_connectors._rest.errors import error_for_lance_response, general_error_mapper
from federator_connectors._rest.protocol import list_all_names


def answer(status: int, text: str = "", **fields: object) -> HttpResponse:
    return HttpResponse("r: asking", status, json.dumps(fields) if fields else text)


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        (0, 406, Unsupported),
        (1, 404, NamespaceNotFound),
        (2, 409, NamespaceAlreadyExists),
        (3, 409, NamespaceNotEmpty),
        (4, 404, TableNotFound),
        (5, 409, TableAlreadyExists),
        (13, 400, InvalidInput),
        (14, 409, ConcurrentModification),
        (15, 403, PermissionDenied),
        (16, 401, Unauthenticated),
        (17, 503, ServiceUnavailable),
        (18, 500, Internal),
        (21, 429, Throttled),
    ],
)
def test_each_code_has_its_error_for_any_status(code: int, status: int, error: type[CatalogError]) -> None:
    # Only absence also needs the status of absence: the recorded statuses of pylance's server, and those of the stubs, are 404.
    for given in (status, 400 if code in (1, 4) else 500):
        found = error_for_lance_response(answer(given, error="said", code=code, instance="/v1"))
        assert type(found) is error
        assert found.message == f"r: asking: said (HTTP {given})"


@pytest.mark.parametrize("code", [1, 4])
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, Unauthenticated), (403, PermissionDenied), (429, Throttled),
        (500, Internal), (502, ServiceUnavailable), (503, ServiceUnavailable), (504, ServiceUnavailable), (507, Internal),
    ],
)  # fmt: skip
def test_a_denial_or_an_outage_never_proves_absence(code: int, status: int, error: type[CatalogError]) -> None:
    assert type(error_for_lance_response(answer(status, error="said", code=code))) is error


def test_codes_of_what_we_never_ask_for_are_internal() -> None:
    own_codes = {kind.code for kind in CatalogError.__subclasses__()}
    for code in {int(code) for code in lance_namespace.ErrorCode} - own_codes | {99}:
        assert type(error_for_lance_response(answer(404, error="said", code=code))) is Internal, code


@pytest.mark.parametrize(
    ("status", "text", "error"),
    [
        (401, "", Unauthenticated),
        (403, "<html>", PermissionDenied),
        (404, "", Unsupported),
        (404, '{"message": "no Route matched"}', Unsupported),
        (404, '{"code": "NotFound"}', Unsupported),
        (404, '{"code": true}', Unsupported),
        (429, "", Throttled),
        (500, "oops", Internal),
        (502, "", ServiceUnavailable),
        (503, "", ServiceUnavailable),
    ],
)
def test_an_answer_of_something_else_goes_by_its_status_and_proves_no_absence(
    status: int, text: str, error: type[CatalogError]
) -> None:
    assert type(error_for_lance_response(answer(status, text))) is error
    if "code" not in text:
        assert type(general_error_mapper(missing=TableNotFound)(answer(status, text))) is error


def test_a_name_on_two_pages_is_one() -> None:
    pages = {None: (["a", "b"], "x"), "x": (["b", "c"], None)}

    def ask(token: str | None) -> HttpResponse:
        names, following = pages[token]
        return answer(200, tables=names, page_token=following)

    assert list_all_names(ask, "tables", "page_token") == ["a", "b", "c"]
