"""Lake Formation's GetTemporaryGlueTableCredentials, which moto does not serve: requests and responses by botocore's service model."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any

import botocore.session
from botocore.validate import ParamValidator

from tests.fixtures.http_handler import KeepAliveHandler

OPERATION: Any = (
    botocore.session.Session().get_service_model("lakeformation").operation_model("GetTemporaryGlueTableCredentials")
)


@dataclass
class LakeFormation:
    """The running server. ``issue`` takes a request and gives a status and a response."""

    issue: Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def lake_formation(issue: Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]) -> Iterator[LakeFormation]:
    """The server on a free port of loopback."""
    stub = LakeFormation(issue)

    class Handler(KeepAliveHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            report = ParamValidator().validate(request, OPERATION.input_shape)
            assert self.path == OPERATION.http["requestUri"], self.path
            assert not report.has_errors(), report.generate_report()
            stub.requests.append(request)
            status, answer = stub.issue(request)
            self.respond(status, json.dumps(answer).encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
