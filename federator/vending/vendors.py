"""The credential vendors of all sources, opened on first use, with one cache."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from federator.connector import ConnectorSettings, ServiceUnavailable, Unsupported, is_endpoint_key
from federator.registry import parse_connector_settings
from federator.settings import Settings, SourceSettings
from federator.vending.azure import AzureVendor
from federator.vending.cache import CredentialCache
from federator.vending.catalog import CatalogVendor
from federator.vending.credentials import CredentialVendor, TableGrant, VendedCredentials
from federator.vending.gcs import GcsVendor
from federator.vending.sts import StsVendor

_VENDORS: dict[str, Callable[[SourceSettings, ConnectorSettings], CredentialVendor]] = {
    "catalog": lambda source, _: CatalogVendor(source), "sts": StsVendor, "gcs": GcsVendor, "azure": AzureVendor,
}  # fmt: skip
#: number of concurrent calls for a source in one process, so that a hanging issuer does not occupy all threads of the API
_CONCURRENT_CALLS = 8
_WAIT_SECONDS = 10.0


class SourceVendor:
    """The vendors of one source, in the order of ``vend``. Safe for threads."""

    def __init__(self, source: str, vendors: Sequence[CredentialVendor]) -> None:
        self.vendors = tuple(vendors)
        self._source = source
        self._calls = threading.BoundedSemaphore(_CONCURRENT_CALLS)

    def applies_to(self, location: str) -> bool:
        """Return whether any vendor could issue credentials for tables at a location."""
        return any(vendor.applies_to(location) for vendor in self.vendors)

    @property
    def is_exact(self) -> bool:
        """Whether the federator itself limits all credentials to the directory of a table. A catalog may limit them less exactly."""
        return not any(isinstance(vendor, CatalogVendor) for vendor in self.vendors)

    def issue(self, grant: TableGrant) -> VendedCredentials:
        """Issue credentials by the first vendor for the location, which must have one (``applies_to``).

        The next one is asked only if a catalog does not issue credentials for this table (Unsupported). A refusal is final. Raise as
        ``CredentialVendor.issue`` does.
        """
        if any(is_endpoint_key(key) for key in grant.record.properties):
            raise Unsupported("no credentials are vended for a table whose properties name an endpoint")
        vendors = [vendor for vendor in self.vendors if vendor.applies_to(grant.location)]
        with self._limited():
            for vendor in vendors[:-1]:
                try:
                    return vendor.issue(grant)
                except Unsupported:
                    continue
            return vendors[-1].issue(grant)

    def check(self) -> str:
        """Test each issuer. Return a text about them. Raise a FederatorError for the first that fails."""
        return "; ".join(vendor.check() for vendor in self.vendors)

    def close(self) -> None:
        """Close the connections to catalogs."""
        for vendor in self.vendors:
            if isinstance(vendor, CatalogVendor):
                vendor.close()

    @contextmanager
    def _limited(self) -> Iterator[None]:
        if not self._calls.acquire(timeout=_WAIT_SECONDS):
            raise ServiceUnavailable(f"{self._source}: the issuer of credentials does not respond to {_CONCURRENT_CALLS} calls")
        try:
            yield
        finally:
            self._calls.release()


def build_vendor(source: SourceSettings) -> SourceVendor | None:
    """Return the vendor of a source; None if it vends no temporary credentials. Raise ConfigError."""
    if not source.vend_methods:
        return None
    settings = parse_connector_settings(source.spec)
    return SourceVendor(source.name, [_VENDORS[method](source, settings) for method in source.vend_methods])


class Vendors:
    """The vendors of a configuration. Safe for threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._cache = CredentialCache()
        self._vendors: dict[str, SourceVendor | None] = {}
        self._building = threading.Lock()

    def find(self, source: str) -> SourceVendor | None:
        """Return the vendor of a source; None if it vends no temporary credentials. Raise ConfigError."""
        with self._building:
            if source not in self._vendors:
                self._vendors[source] = build_vendor(self._settings.source(source))
            return self._vendors[source]

    def issue(self, vendor: SourceVendor, grant: TableGrant) -> VendedCredentials:
        """Return cached or new credentials for a grant. Raise as ``CredentialVendor.issue`` does."""
        key = (grant.source, grant.path, grant.location, grant.record.native_id, grant.access, grant.principal)
        return self._cache.get(key, lambda: vendor.issue(grant))

    def close(self) -> None:
        """Close the connections to catalogs."""
        for vendor in self._vendors.values():
            if vendor is not None:
                vendor.close()
