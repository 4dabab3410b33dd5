"""AWS Glue on loopback: ``python -m federator.demo.servers.glue RUN_DIR``.

moto's: the HTTP server, the wire protocol, S3, STS and IAM (with policy enforcement, off until its ``reset-auth`` route says
otherwise), databases and tables as they are kept, versioned and deleted (a database goes with its tables, as in AWS, where
that happens asynchronously), the errors EntityNotFoundException and AlreadyExistsException.

Ours, where moto 5.2 falls short of the service's documentation:

- ``CreateCatalog``, ``GetCatalog``, ``GetCatalogs``, ``UpdateCatalog``, ``DeleteCatalog``. A catalog is a Glue backend of its own,
  which CatalogId chooses. ``CreateCatalog`` knows no parent and refuses ``.``, ``/`` and ``\\`` in names;
  IncludeRoot beside ParentCatalogId is refused.
- Pages of at most 100 with NextToken for databases, tables and catalogs; a listing goes in the order of names.
- Names of databases and tables fold to lower case.
- ``UpdateTable`` compares VersionId.

A test's convention, not AWS's: a catalog whose Parameters hold ``PARENT_PARAMETER`` is made inside the catalog of that id,
since the service itself has no call for nested catalogs (they come from federation). Everything is in memory. State is kept
apart by account, which moto takes from the credentials: ``sts.assume_role`` into any account id gives an empty one.
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
    """The databases of one child catalog, and the catalog's own description. ``account_id`` is the catalog's id."""

    def __init__(self, region: str, catalog_id: str, parent: str, description: dict[str, Any]) -> None:
        super().__init__(region, catalog_id)
        self.parent = parent
        self.description = description


class CatalogResponse(GlueResponse):
    """moto's Glue with catalogs."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The request, with the names that Glue folds in lower case."""
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
        """The child catalogs of this account by id. Kept on the root's backend, so that moto's reset clears them."""
        found: dict[str, CatalogBackend] = vars(self.root).setdefault("federator_catalogs", {})
        return found

    @property
    def glue_backend(self) -> GlueBackend:
        """The backend of the catalog that the request names."""
        return self._backend(self.parameters.get("CatalogId"))

    def create_catalog(self) -> ActionResult:
        request = self.parameters
        name, given = request["Name"], request["CatalogInput"]
        if _REFUSED_IN_CATALOG_NAMES.search(name) or len(name) > 64 or name == self.current_account:
            raise _invalid(f"Catalog name {name} is not valid.")
        parameters = dict(given.get("Parameters") or {})
        parent = parameters.pop(PARENT_PARAMETER, self.current_account)
        self._backend(parent)
        catalog_id = f"{self.current_account}:{name}" if parent == self.current_account else f"{parent}/{name}"
        if catalog_id in self.catalogs:
            raise AlreadyExistsException("Catalog")
        arn = f"arn:aws:glue:{self.region}:{self.current_account}:catalog/{catalog_id.partition(':')[2]}"
        description = {
            **given,
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
        found = [c for c in self.catalogs.values() if c.parent == start or (request.get("Recursive") and self._below(c, start))]
        listed = [self._description(c) for c in sorted(found, key=lambda c: c.account_id)]
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
    """One page; the token holds the offset, and a token of ours that cannot be read is an error as it is in AWS."""
    everything = list(items)
    try:
        start = int(base64.b64decode(request.get("NextToken") or "MA==", validate=True))
    except ValueError:
        raise _invalid("Invalid pagination token provided.") from None
    end = start + min(request.get("MaxResults") or _PAGE, _PAGE)
    page: dict[str, Any] = {key: everything[start:end]}
    if end < len(everything):
        page["NextToken"] = base64.b64encode(str(end).encode()).decode()
    return page


def start_glue(run_dir: Path) -> Server:
    """Starts the server on a free port and waits until it answers. Raises StateError with the end of its log."""
    return process.start("federator.demo.servers.glue", run_dir, timeout=60)


def serve(run_dir: Path, ready: Callable[[str, str, Path], None] = process.announce) -> None:
    """Serves on 127.0.0.1 until the process ends."""
    moto.glue.urls.url_paths = {"{0}/$": CatalogResponse.dispatch}
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
    ready("glue", f"http://127.0.0.1:{server.server_port}", run_dir)
    server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
