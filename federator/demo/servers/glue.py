"""AWS Glue on loopback: ``python -m federator.demo.servers.glue RUN_DIR``.

moto provides the HTTP server, the wire protocol, S3, STS and IAM (policies are enforced only after a call of its ``reset-auth``
route). It also stores, versions and deletes databases and tables, and raises EntityNotFoundException and AlreadyExistsException.
Deleting a database deletes its tables, which AWS does asynchronously.

This module adds what moto 5.2 lacks compared with the service's documentation:

- ``CreateCatalog``, ``GetCatalog``, ``GetCatalogs``, ``UpdateCatalog``, ``DeleteCatalog``. Each catalog has its own Glue backend,
  which CatalogId selects. ``CreateCatalog`` has no parent parameter and refuses ``.``, ``/`` and ``\\`` in names; IncludeRoot together
  with ParentCatalogId is refused.
- Pages of at most 100 entries with NextToken for databases, tables and catalogs, in the order of names.
- Names of databases and tables are folded to lower case.
- ``UpdateTable`` compares VersionId.

A convention of the tests, not of AWS: a catalog with ``PARENT_PARAMETER`` in its Parameters is created inside the catalog of that id,
because the service has no call for nested catalogs (they come from federation). All state is in memory and separate for each account.
moto takes the account from the credentials: ``sts.assume_role`` into a new account id gives an empty account.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import moto.glue.urls
from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult, EmptyResult
from moto.core.utils import utcnow
from moto.glue.exceptions import AlreadyExistsException, EntityNotFoundException
from moto.glue.models import GlueBackend, glue_backends
from moto.glue.responses import GlueResponse
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from federator.demo.servers import process
from federator.demo.servers.process import Server

PARENT_PARAMETER = "moto.parent-catalog-id"

_PAGE = 100
_REFUSED_IN_CATALOG_NAMES = re.compile(r"[./\\]|aws:")


class CatalogBackend(GlueBackend):
    """The databases and the description of one child catalog. ``account_id`` is the catalog's id."""

    def __init__(self, region: str, catalog_id: str, parent: str, description: dict[str, Any]) -> None:
        super().__init__(region, catalog_id)
        self.parent = parent
        self.description = description


class CatalogResponse(GlueResponse):
    """moto's Glue, extended by catalogs."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The request, with the names that Glue folds converted to lower case."""
        request: dict[str, Any] = json.loads(self.body)
        holders = [(request, "DatabaseName"), (request.get("DatabaseInput"), "Name"), (request.get("TableInput"), "Name")]
        if "atalog" not in self._get_action():
            holders.append((request, "Name"))
        for holder, key in holders:
            if holder and isinstance(holder.get(key), str):
                holder[key] = holder[key].lower()
        return request

    @property
    def root(self) -> GlueBackend:
        return glue_backends[self.current_account][self.region]

    @property
    def catalogs(self) -> dict[str, CatalogBackend]:
        """The child catalogs of this account by id. They are stored on the root's backend, so that moto's reset clears them."""
        catalogs: dict[str, CatalogBackend] = vars(self.root).setdefault("federator_catalogs", {})
        return catalogs

    @property
    def glue_backend(self) -> GlueBackend:
        """The backend of the catalog in the request."""
        return self._backend(self.parameters.get("CatalogId"))

    def create_catalog(self) -> ActionResult:
        request = self.parameters
        name, catalog_input = request["Name"], request["CatalogInput"]
        if _REFUSED_IN_CATALOG_NAMES.search(name) or len(name) > 64 or name == self.current_account:
            raise _invalid(f"Catalog name {name} is not valid.")
        parameters = dict(catalog_input.get("Parameters") or {})
        parent = parameters.pop(PARENT_PARAMETER, self.current_account)
        self._backend(parent)
        catalog_id = f"{self.current_account}:{name}" if parent == self.current_account else f"{parent}/{name}"
        if catalog_id in self.catalogs:
            raise AlreadyExistsException("Catalog")
        arn = f"arn:aws:glue:{self.region}:{self.current_account}:catalog/{catalog_id.partition(':')[2]}"
        description = {
            **catalog_input,
            "CatalogId": catalog_id,
            "Name": name,
            "ResourceArn": arn,
            "Parameters": parameters,
            "CreateTime": utcnow(),
        }
        self.catalogs[catalog_id] = CatalogBackend(self.region, catalog_id, parent, description)
        return EmptyResult()

    def get_catalog(self) -> ActionResult:
        backend = self._backend(self.parameters["CatalogId"])
        return ActionResult({"Catalog": self._description(backend)})

    def get_catalogs(self) -> ActionResult:
        request = self.parameters
        parent = request.get("ParentCatalogId")
        if parent is not None and "IncludeRoot" in request:
            raise _invalid("IncludeRoot cannot be used with ParentCatalogId.")
        self._backend(parent)
        start = parent or self.current_account
        children = [
            c for c in self.catalogs.values() if c.parent == start or (request.get("Recursive") and self._below(c, start))
        ]
        listed = [self._description(c) for c in sorted(children, key=lambda c: c.account_id)]
        if request.get("IncludeRoot"):
            listed.insert(0, self._description(self.root))
        return ActionResult(_page(request, "CatalogList", listed))

    def update_catalog(self) -> ActionResult:
        request = self.parameters
        backend = self._backend(request["CatalogId"])
        if not isinstance(backend, CatalogBackend):
            raise _invalid("The default catalog cannot be updated.")
        fixed = {key: backend.description[key] for key in ("CatalogId", "Name", "ResourceArn", "CreateTime")}
        backend.description = {"Parameters": {}, **request["CatalogInput"], **fixed, "UpdateTime": utcnow()}
        return EmptyResult()

    def delete_catalog(self) -> ActionResult:
        catalog_id = self.parameters["CatalogId"]
        if catalog_id not in self.catalogs:
            raise EntityNotFoundException(f"Catalog {catalog_id} not found.")
        del self.catalogs[catalog_id]
        return EmptyResult()

    def get_databases(self) -> ActionResult:
        databases = sorted(self.glue_backend.get_databases(), key=lambda d: str(d.name))
        return ActionResult(_page(self.parameters, "DatabaseList", [d.as_dict() for d in databases]))

    def get_tables(self) -> ActionResult:
        request = self.parameters
        tables = self.glue_backend.get_tables(request["DatabaseName"], request.get("Expression"))
        return ActionResult(_page(request, "TableList", [t.as_dict() for t in sorted(tables, key=lambda t: str(t.name))]))

    def update_table(self) -> ActionResult:
        request = self.parameters
        table = self.glue_backend.get_table(request["DatabaseName"], request["TableInput"]["Name"])
        if request.get("VersionId") not in (None, table.as_dict()["VersionId"]):
            raise JsonRESTError("ConcurrentModificationException", "Update table failed due to concurrent modifications.")
        return super().update_table()

    def _backend(self, catalog_id: str | None) -> GlueBackend:
        if catalog_id in (None, self.current_account):
            return self.root
        if catalog_id in list(glue_backends):
            # Another account that has used the service. Its resource policy would have to allow it.
            backend: GlueBackend = glue_backends[catalog_id][self.region]
            return backend
        if catalog_id not in self.catalogs:
            raise EntityNotFoundException(f"Catalog {catalog_id} not found.")
        return self.catalogs[catalog_id]

    def _description(self, backend: GlueBackend) -> dict[str, Any]:
        if isinstance(backend, CatalogBackend):
            return backend.description
        return {"CatalogId": backend.account_id, "Name": backend.account_id, "Parameters": {}}

    def _below(self, catalog: CatalogBackend, ancestor: str) -> bool:
        parent: str | None = catalog.parent
        while parent is not None and parent != ancestor:
            parent = self.catalogs[parent].parent if parent in self.catalogs else None
        return parent == ancestor


def _invalid(message: str) -> JsonRESTError:
    return JsonRESTError("InvalidInputException", message)


def _page(request: dict[str, Any], key: str, items: Iterable[Any]) -> dict[str, Any]:
    """Return one page. The token contains the offset; an invalid token is an error, as in AWS."""
    all_items = list(items)
    try:
        start = int(base64.b64decode(request.get("NextToken") or "MA==", validate=True))
    except ValueError:
        raise _invalid("Invalid pagination token provided.") from None
    end = start + min(request.get("MaxResults") or _PAGE, _PAGE)
    page: dict[str, Any] = {key: all_items[start:end]}
    if end < len(all_items):
        page["NextToken"] = base64.b64encode(str(end).encode()).decode()
    return page


def start_glue(run_dir: Path) -> Server:
    """Start the server on a free port and wait until it is ready. Raise StateError with the end of its log."""
    return process.start("federator.demo.servers.glue", run_dir, timeout=60)


def serve(run_dir: Path, ready: Callable[[str, str, Path], None] = process.announce) -> None:
    """Serve on 127.0.0.1 until the process ends."""
    moto.glue.urls.url_paths = {"{0}/$": CatalogResponse.dispatch}
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
    ready("glue", f"http://127.0.0.1:{server.server_port}", run_dir)
    server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
