"""Error documents of the Lance REST protocol: ``{error, code, detail, instance}``, with the reference adapter's statuses.

Every error below ``/v1`` has this form: errors of the federator, invalid requests, missing tokens, unknown routes and unsupported
methods. ``federator.api.problems`` chooses the form by the path; routes only raise.
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
# An unknown route is an unsupported operation (code 0), not a missing object.
_CODE = {401: 16, 403: 15, 404: 0, 405: 0, 406: 0, 409: 14, 421: 15, 429: 21, 503: 17}


def is_lance_path(path: str) -> bool:
    """Whether responses on this path follow the Lance protocol."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def code_for_status(status: int) -> int:
    """Return the spec's error code of a status. Other statuses have Internal (18) from 500 up and InvalidInput (13) below."""
    return _CODE.get(status, 18 if status >= 500 else 13)


def error_response(
    path: str,
    status: int,
    message: str,
    *,
    code: int | None = None,
    detail: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return an error document as a response. ``error`` is what clients show; ``detail`` says what to do, if it is known."""
    body = {
        "error": message,
        "code": code_for_status(status) if code is None else code,
        "detail": detail or message,
        "instance": path,
    }
    return JSONResponse(body, status, headers=dict(headers or {}))
