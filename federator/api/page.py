"""Serve the page: its document at every path below ``/ui``, and its files below ``/web``.

Neither contains data of the index, so both are open: the page asks for a credential when the API refuses a request of it.
"""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from federator import web


def install_page(app: FastAPI, *, sign_in: str | None) -> None:
    """Add the routes of the page to an app. ``sign_in``: the path at which a person signs in; None if none can with a browser."""
    assets = web.load_assets()
    document = assets.document_with(sign_in=sign_in)

    @app.get("/", include_in_schema=False)
    def redirect_to_page() -> RedirectResponse:
        return RedirectResponse("/ui/", status_code=307)

    @app.get("/ui", include_in_schema=False)
    def redirect_to_overview() -> RedirectResponse:
        return RedirectResponse("/ui/", status_code=307)

    @app.get("/ui/{path:text}", include_in_schema=False)
    def get_document(path: str) -> HTMLResponse:  # noqa: ARG001 - each view has its path; the page reads it
        return HTMLResponse(document)

    @app.get("/web/{digest}/{name:path}", include_in_schema=False)
    def get_file(digest: str, name: str) -> Response:
        if digest != assets.digest or name not in assets.files:
            raise HTTPException(404, f"the page has no file {name[:100]} of this version")
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(assets.files[name], media_type=assets.media_type(name), headers=headers)
