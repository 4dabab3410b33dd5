"""Errors as the Lance REST protocol has them: ``{error, code, detail, instance}``, with the reference adapter's statuses.

Everything below ``/v1`` that is no success answers so: errors of ours, invalid requests, missing tokens, unknown routes, unsupported
methods. ``federator.api.problems`` decides by the path; a route only raises.
"""

from __future__ import annotations

from collections.abc import Mapping

from fastapi.responses import JSONResponse

PREFIX = "/v1"
#: the HTTP status of each error code of the Lance Namespace spec
STATUS = {
    0: 406, 1: 404, 2: 409, 3: 409, 4: 404, 5: 409, 6: 404, 7: 409, 8: 404, 9: 409, 11: 404, 12: 404, 13: 400, 14: 409, 15: 403,
    16: 401, 17: 503, 18: 500, 19: 409, 20: 400, 21: 429, 22: 404, 23: 409,
}  # fmt: skip
# A route that is not there is an operation that is not supported, never an object that does not exist.
_CODE = {401: 16, 403: 15, 404: 0, 405: 0, 406: 0, 409: 14, 421: 15, 429: 21, 503: 17}


def is_lance(path: str) -> bool:
    """Whether an answer on this path is the protocol's."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def code_of(status: int) -> int:
    """The spec's code for a failure that comes without one: Internal from 500 up, InvalidInput for what is the caller's doing."""
    return _CODE.get(status, 18 if status >= 500 else 13)


def answer(
    path: str,
    status: int,
    message: str,
    *,
    code: int | None = None,
    detail: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """An error document as an HTTP answer. ``error`` is what clients show; ``detail`` says what to do, where that is known."""
    body = {"error": message, "code": code_of(status) if code is None else code, "detail": detail or message, "instance": path}
    return JSONResponse(body, status, headers=dict(headers or {}))
