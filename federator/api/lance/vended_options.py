"""The storage options of a table in a response: plain ones, the source's own secrets, or temporary credentials for this table.

Every response with credentials is an audit event. It is recorded before the response is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from federator.api.dependencies import IndexDep, PrincipalDep, SettingsDep
from federator.api.http_middleware import NO_STORE
from federator.api.lance.lookup import VisibleTable
from federator.api.principals import Principal, can_receive_secrets, vended_access
from federator.connector import PermissionDenied, Unsupported
from federator.connector.storage_options import lance_scheme
from federator.lance.foreign_locations import is_inside, is_part_of
from federator.model import canonical_location, parse_path_key, path_key
from federator.model.audit_kinds import AuditKind
from federator.settings import Settings
from federator.store import Index, audit_log
from federator.vending import SourceVendor, TableGrant, Vendors
from federator.views import datasets


@dataclass(frozen=True, slots=True)
class ResponseOptions:
    """The storage options of a response. ``vended`` are those of them that are temporary credentials.

    ``is_unmasked``: the response is sent with all secrets of the table.
    """

    options: Mapping[str, str] = field(repr=False)
    vended: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_unmasked: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableVending:
    """Decides which storage options a principal receives."""

    index: Index
    settings: Settings
    principal: Principal
    vendors: Vendors

    def options_for(self, table: VisibleTable, *, requested: bool | None) -> ResponseOptions:
        """Return the storage options of a table for a response; ``requested`` is ``vend_credentials`` of the request.

        The source's own secrets are returned on request only. Temporary credentials are also returned if ``requested`` is None,
        because Lance's clients do not set it when they open a table. Raise as ``CredentialVendor.issue`` does, PermissionDenied
        if the location contains a hidden table, and Unsupported if they are requested for a store without a vendor.
        """
        plain = ResponseOptions(table.storage_options(with_secrets=False))
        if requested and can_receive_secrets(self.principal, table.source, table.path):
            self._record(table, {"method": "static", "access": "write"})
            return ResponseOptions(table.storage_options(with_secrets=True), is_unmasked=True, headers=NO_STORE)
        vendor = self.vendors.find(table.source.name) if requested is not False and table.record.location else None
        if vendor is None:
            return plain
        if not vendor.applies_to(table.location):
            if requested and lance_scheme(table.location):
                raise Unsupported(
                    f"{path_key(table.path)}: {table.source.name} vends no credentials for {lance_scheme(table.location)}",
                    hint="set vend_credentials to false",
                )
            return plain
        return self._vend(table, vendor)

    def _vend(self, table: VisibleTable, vendor: SourceVendor) -> ResponseOptions:
        access = vended_access(self.principal, table.path)
        if access is None:
            raise PermissionDenied(f"{path_key(table.path)} is outside the scopes of {self.principal.name}")
        self._require_no_hidden_neighbour(table, neighbours=not vendor.is_exact)
        grant = TableGrant(table.source.name, table.path, table.record, access, self.principal.name)
        credentials = self.vendors.issue(vendor, grant)
        self._record(table, {
            "method": credentials.method, "access": access.value, "issuer": credentials.issuer, "expires_at": credentials.expires_at,
        })  # fmt: skip
        options = credentials.storage_options(table.source_options())
        return ResponseOptions(options, vended=credentials.options, headers=NO_STORE)

    def _require_no_hidden_neighbour(self, table: VisibleTable, *, neighbours: bool) -> None:
        """Raise PermissionDenied if another declared table, which the principal may not see, is inside the location or around it.

        ``neighbours``: also if the location of a hidden table begins with the same text. Some catalogs limit their credentials by it.
        """
        aliases = self.settings.location_aliases
        canonical = canonical_location(table.location, aliases)
        overlapping = datasets.list_tables_that_may_overlap(self.index, table.location, aliases, neighbours=neighbours)
        # The files of a table around this one are not reached, unless this location is among them.
        reached = [
            name
            for name, location in overlapping.items()
            if not is_inside(canonical, [location]) or is_part_of(canonical, location)
        ]
        if not all(self.principal.scopes.covers(parse_path_key(name)) for name in reached):
            raise PermissionDenied(
                f"{path_key(table.path)}: the location contains another table, is part of one, or begins the name of one, "
                "so no credentials are vended"
            )

    def _record(self, table: VisibleTable, detail: Mapping[str, object]) -> None:
        with self.index.write() as connection:
            audit_log.append_event(
                connection, AuditKind.CREDENTIALS_VENDED, actor=self.principal.name, run_id=None, subject=path_key(table.path),
                detail={**detail, "location": table.record.location},
            )  # fmt: skip


def _get_vending(request: Request, index: IndexDep, settings: SettingsDep, principal: PrincipalDep) -> TableVending:
    return TableVending(index, settings, principal, request.app.state.vendors)


VendingDep = Annotated[TableVending, Depends(_get_vending)]
