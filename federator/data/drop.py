"""Deletion of a table's data for DropTable, and the checks before it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from federator.connector import PermissionDenied, ServiceUnavailable
from federator.data.lance_errors import LANCE_ERRORS, to_catalog_error
from federator.data.table_handle import TableHandle
from federator.lance.foreign_locations import is_file_of_table, list_lost_locations, require_no_link, resolve_pinned
from federator.lance.pinned_directory import PinnedDirectory, delete_directory
from federator.model import local_path


def drop_table_data(handle: TableHandle, *, resolved: str) -> dict[str, Any]:
    """Delete all data of the table. ``resolved`` is the resolved location that ``list_lost_tables`` returned for the table.

    Raise TableNotFound if there is no table, PermissionDenied if the directory is a link, or another one than at that check.

    Used only for a user's DropTable in a source that allows it; mirroring never calls this.
    """
    import lance

    handle.open_unchecked()
    if handle.pinned is not None:
        _delete_pinned(handle, handle.pinned, resolved)
        return {}
    try:
        lance.LanceDataset.drop(handle.written_uri, handle.storage_options)
    except LANCE_ERRORS as error:
        raise to_catalog_error(error) from None
    return {}


def _delete_pinned(handle: TableHandle, pinned: PinnedDirectory, resolved: str) -> None:
    if resolve_pinned(handle.location, pinned) != resolved or Path(str(local_path(handle.location))).is_symlink():
        raise PermissionDenied("the directory of the table is a link, or another one than when it was checked")
    try:
        delete_directory(pinned, handle.location)
    except OSError as error:
        raise ServiceUnavailable(f"not all files of the table could be deleted: {error.strerror}") from error


def list_foreign_files(handle: TableHandle) -> dict[str, Any]:
    """Return the ``names`` in a table's directory that do not belong to it, as paths below it. Raise the store's errors.

    Lance's drop deletes the whole directory, including other tables in it, which no catalog has to declare, and any other files.
    """
    from lance.file import LanceFileSession

    try:
        paths = LanceFileSession(handle.uri, storage_options=handle.storage_options).list()
    except LANCE_ERRORS as error:
        raise to_catalog_error(error) from None
    return {"names": sorted({name for name in map(_foreign_name, paths) if name})}


def list_lost_tables(handle: TableHandle, *, canonical: str, declared: Sequence[str]) -> dict[str, Any]:
    """Return ``locations``, those of the ``declared`` canonical ones that would lose data with this table, and ``resolved``, its own
    location without symbolic links.

    ``canonical`` is the table's own canonical location. Raise PermissionDenied if it is reached through a symbolic link.
    """
    require_no_link(handle.location, handle.mounts, handle.pinned)
    lost = list_lost_locations(handle.location, canonical, declared, handle.pinned)
    return {"locations": lost, "resolved": resolve_pinned(handle.location, handle.pinned)}


def _foreign_name(path: str) -> str | None:
    """Return the other table in the directory, or the first name, to which a file belongs. None if it belongs to the table itself."""
    names = path.split("/")
    # The directory of a table, at any depth, contains one of these names.
    depth = next((index for index, name in enumerate(names) if name in ("_versions", ".lance-reserved")), 0)
    if depth and names[0] != "tree":
        return "/".join(names[:depth])
    return None if not names[0] or is_file_of_table(path) else names[0]
