"""Credentials that a catalog issues for its own tables (``Catalog.issue_credentials``)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from federator.connector import ConcurrentModification, Internal, InvalidInput, PermissionDenied, Unauthenticated
from federator.connector.catalog_pool import CatalogPool
from federator.model import path_key
from federator.registry import open_catalog
from federator.vending.credentials import Access, TableGrant, VendedCredentials
from federator.vending.locations import AZURE_SCHEMES, GCS_SCHEMES, S3_SCHEMES, has_scheme, parse_prefix

if TYPE_CHECKING:
    from federator.settings import SourceSettings


# Published versions of catalogs put locations into policies as they are, where these characters have a meaning.
_SPECIAL = re.compile(r"[*$'\"]")


class CatalogVendor:
    """Vends the credentials of the source's catalog, which decides what they allow."""

    method = "catalog"

    def __init__(self, source: SourceSettings, *, now: Callable[[], float] = time.time) -> None:
        self._source = source
        self._now = now
        self._pool = CatalogPool(lambda: open_catalog(source.spec))

    def applies_to(self, location: str) -> bool:
        return has_scheme(location, (*S3_SCHEMES, *GCS_SCHEMES, *AZURE_SCHEMES))

    def issue(self, grant: TableGrant) -> VendedCredentials:
        """Issue credentials for the table that the index has: another one at its path, or another location, is an error."""
        if _SPECIAL.search(parse_prefix(grant.location).key):
            raise InvalidInput("no credentials of the catalog are vended for a location with *, $ or a quotation mark")
        known, issued_at, key = grant.record, self._now(), path_key(grant.path)
        try:
            with self._pool.borrow() as catalog:
                current = catalog.describe_table(known.path)
                # A table that was just declared has no id in its record yet.
                if current.location != known.location or known.native_id not in (None, current.native_id):
                    raise ConcurrentModification(
                        f"{key} has changed in its catalog since the last crawl", hint=f"federator crawl {self._source.name}"
                    )
                issued = catalog.issue_credentials(current, writes=grant.access is Access.WRITE)
        except Unauthenticated as error:
            # Code 16 is for the credentials of the principal, not for those of the source.
            raise PermissionDenied(error.message, hint=error.hint) from None
        if issued.expires_at <= issued_at:
            raise Internal(f"{key}: the catalog issued credentials that have expired")
        return VendedCredentials(issued.options, issued_at, issued.expires_at, f"the catalog {self._source.name}", self.method)

    def check(self) -> str:
        with self._pool.borrow() as catalog:
            catalog.ping()
        return f"{self._source.impl} is asked for each table; what it issues is not tested"

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()
