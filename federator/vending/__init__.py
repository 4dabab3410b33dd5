"""Temporary credentials for exactly one table, which the API returns with a table's storage options."""

from federator.vending.credentials import Access, CredentialVendor, TableGrant, VendedCredentials
from federator.vending.vendors import SourceVendor, Vendors

__all__ = ["Access", "CredentialVendor", "SourceVendor", "TableGrant", "VendedCredentials", "Vendors"]
