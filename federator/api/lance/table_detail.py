"""Details of a table's stored state for DescribeTable, read by a process of ``federator.data`` that can be killed."""

from __future__ import annotations

from typing import Any

from federator.api.lance.lookup import VisibleTable, capabilities
from federator.connector import Unsupported
from federator.data import PrincipalPool, TableHandle, run_inspection
from federator.lance.opening import opening_options
from federator.registry import parse_connector_settings
from federator.store import Index, verifications


def table_handle(table: VisibleTable) -> TableHandle:
    """Return a table's location with the source's own ``storage.*`` options. Options of the table do not override them.

    Raise Unsupported for a source without data operations.
    """
    if not table.source.data_operations:
        raise Unsupported(f"tables of {table.source.name} cannot be opened: data_operations = false in its settings")
    settings = parse_connector_settings(table.source.spec)
    storage = opening_options(settings, table.location, table.record.properties)
    return TableHandle(table.location, storage, settings.allowed_bases, table.may_read, (settings.root_uri,))


def read_table_detail(
    pool: PrincipalPool,
    table: VisibleTable,
    *,
    version: int | None = None,
    tag: str | None = None,
    branch: str | None = None,
    lance_types: bool = False,
) -> dict[str, Any]:
    """Return ``version``, ``schema``, ``stats`` and ``metadata`` of a table at a version, a tag, or the newest version of a branch.

    ``lance_types``: see ``federator.data.stats.describe_table``.

    Raise TableNotFound if nothing has been written, TableVersionNotFound, TableTagNotFound or TableBranchNotFound.
    """
    detail: dict[str, Any] = pool.run(
        "describe", table_handle(table), version=version, tag=tag, branch=branch, lance_types=lance_types
    )
    return detail


def is_empty_directory(table: VisibleTable, state: str) -> bool:
    """Whether the table, with this verification state of its location, is an empty directory that no catalog declares.

    That is the case in sources whose directories are their tables. Elsewhere the catalog may have created the directory.
    """
    return state == "empty" and capabilities(table.source).reports_unwritten


def get_verification_state(pool: PrincipalPool, index: Index, table: VisibleTable) -> str:
    """Return the verification state of the table's location: the stored one if it is ``valid``, else that of an inspection now."""
    canonical_location = table.record.canonical
    if canonical_location is None:
        return "missing"
    with index.read() as connection:
        verification = verifications.find_verification(connection, table.source.name, canonical_location)
    if verification is not None and verification.state == "valid":
        return "valid"
    return run_inspection(pool.run, table_handle(table)).state
