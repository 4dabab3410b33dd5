"""Operations on the versions, tags and branches of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from federator.connector import InvalidInput, PermissionDenied
from federator.connector.errors import (
    TableBranchAlreadyExists,
    TableBranchNotFound,
    TableTagAlreadyExists,
    TableTagNotFound,
    TableVersionNotFound,
)
from federator.data.lance_errors import LANCE_ERRORS, to_catalog_error
from federator.data.table_handle import MAIN, TableHandle, branch_path, is_main, require_possible_version
from federator.lance.foreign_locations import ForeignLocationsFound

# A manifest is named by its version, or by the largest 64-bit number minus its version, so that the newest is listed first. Such a
# reversed name has always the same length.
_MANIFEST = re.compile(r"(\d+)\.manifest")
_MAX_VERSION = (1 << 64) - 1
_REVERSED_NAME_LENGTH = len(f"{_MAX_VERSION}.manifest")


def list_versions(
    handle: TableHandle,
    *,
    branch: str | None = None,
    page_token: str | None = None,
    limit: int | None = None,
    descending: bool | None = None,
) -> dict[str, Any]:
    """Return a ``ListTableVersionsResponse``, oldest first unless ``descending``. The token is the last version of the page.

    A version that refers to other locations than the opened one has only its number and the path of its manifest.
    """
    with handle.opened_dataset(branch=branch) as dataset:
        versions = [version["version"] for version in dataset.version_refs()]
        versions.sort(reverse=bool(descending))
        if page_token is not None:
            last = _parse_page_token(page_token)
            versions = [version for version in versions if (version < last if descending else version > last)]
        page = versions if limit is None else versions[: max(1, limit)]
        manifests = _list_manifests(handle, branch)
        entries = [_version_json(handle, dataset, branch, version, manifests) for version in page]
    return {"versions": entries} | ({"page_token": str(page[-1])} if len(page) < len(versions) else {})


def describe_version(handle: TableHandle, *, version: int | None = None, branch: str | None = None) -> dict[str, Any]:
    """Return a ``DescribeTableVersionResponse``, of the newest version by default."""
    with handle.opened_dataset(version, branch) as dataset:
        return {"version": _version_json(handle, dataset, branch, dataset.version, _list_manifests(handle, branch))}


def restore_version(handle: TableHandle, *, version: int, branch: str | None = None) -> dict[str, Any]:
    """Make an old version the newest. Return a ``RestoreTableResponse``."""
    with handle.opened_dataset(version, branch) as dataset:
        dataset.restore()
        return transaction_id(dataset)


def transaction_id(dataset: Any) -> dict[str, Any]:
    """Return the id of the commit that created the dataset's version, if it is known."""
    transaction = dataset.read_transaction(dataset.version)
    return {"transaction_id": transaction.uuid} if transaction is not None else {}


def list_tags(handle: TableHandle, *, page_token: str | None = None, limit: int | None = None) -> dict[str, Any]:
    """Return a ``ListTableTagsResponse``, sorted by name."""
    with handle.opened_dataset() as dataset:
        entries = {
            name: {"version": tag["version"], "manifestSize": tag["manifest_size"]} | _optional_field("branch", tag["branch"])
            for name, tag in dataset.tags.list().items()
        }
    return _paginate("tags", entries, page_token, limit)


def get_tag_version(handle: TableHandle, *, tag: str) -> dict[str, Any]:
    with handle.opened_dataset() as dataset:
        tagged = _find_tag(dataset, tag)
        return {"version": tagged["version"]} | _optional_field("branch", tagged["branch"])


def create_tag(handle: TableHandle, *, tag: str, version: int, branch: str | None = None) -> dict[str, Any]:
    """Tag a version. Raise TableTagAlreadyExists, TableVersionNotFound or TableBranchNotFound."""
    with handle.opened_dataset() as dataset:
        if tag in dataset.tags.list():
            raise TableTagAlreadyExists(f"the table already has a tag {tag!r}")
        dataset.tags.create(tag, _require_version(dataset, version, branch))
    return {}


def update_tag(handle: TableHandle, *, tag: str, version: int, branch: str | None = None) -> dict[str, Any]:
    with handle.opened_dataset() as dataset:
        _find_tag(dataset, tag)
        dataset.tags.update(tag, _require_version(dataset, version, branch))
    return {}


def delete_tag(handle: TableHandle, *, tag: str) -> dict[str, Any]:
    with handle.opened_dataset() as dataset:
        _find_tag(dataset, tag)
        dataset.tags.delete(tag)
    return {}


def list_branches(handle: TableHandle, *, page_token: str | None = None, limit: int | None = None) -> dict[str, Any]:
    """Return a ``ListTableBranchesResponse``, sorted by name. The main branch is not listed."""
    with handle.opened_dataset() as dataset:
        entries = {
            name: {
                "parentVersion": info["parent_version"],
                "createAt": info["create_at"],
                "manifestSize": info["manifest_size"],
            }
            | _optional_field("parentBranch", info["parent_branch"])
            | _optional_field("metadata", info["metadata"] or None)
            for name, info in dataset.branches.list().items()
        }
    return _paginate("branches", entries, page_token, limit)


def create_branch(
    handle: TableHandle, *, name: str, from_branch: str | None = None, from_version: int | None = None
) -> dict[str, Any]:
    """Create a branch. Raise TableBranchAlreadyExists, and TableBranchNotFound or TableVersionNotFound for its starting point."""
    # The branch's manifest stores the path at which the table was opened. The pinned path exists in this process only.
    handle = replace(handle, pinned=None)
    with handle.opened_dataset(from_version, from_branch) as dataset:
        if name == MAIN or name in dataset.branches.list():
            raise TableBranchAlreadyExists(f"the table already has a branch {name!r}")
        start = dataset.version if is_main(from_branch) else (from_branch, dataset.version)
        dataset.create_branch(name, start, handle.storage_options)
    return {}


def delete_branch(handle: TableHandle, *, name: str) -> dict[str, Any]:
    with handle.opened_dataset() as dataset:
        if name not in dataset.branches.list():
            raise TableBranchNotFound(f"the table has no branch {name!r}")
        dataset.branches.delete(name)
    return {}


def _find_tag(dataset: Any, tag: str) -> dict[str, Any]:
    tags: dict[str, dict[str, Any]] = dataset.tags.list()
    if tag not in tags:
        raise TableTagNotFound(f"the table has no tag {tag!r}")
    return tags[tag]


def _require_version(dataset: Any, version: int, branch: str | None) -> Any:
    """Return a version of a branch in pylance's form. Raise TableBranchNotFound or TableVersionNotFound if it does not exist."""
    require_possible_version(version)
    if not is_main(branch) and branch not in dataset.branches.list():
        raise TableBranchNotFound(f"the table has no branch {branch!r}")
    reference = version if is_main(branch) else (branch, version)
    try:
        dataset.checkout_version(reference)
    except LANCE_ERRORS as error:
        catalog_error = to_catalog_error(error)
        if isinstance(catalog_error, InvalidInput):
            raise catalog_error from None
        raise TableVersionNotFound(f"the table has no version {version}") from None
    return reference


def _list_manifests(handle: TableHandle, branch: str | None) -> dict[int, str]:
    """Return the file names of the manifests by version, as the store lists them."""
    from lance.file import LanceFileSession

    session = LanceFileSession(f"{handle.uri}/{branch_path(branch)}_versions", storage_options=handle.storage_options)
    numbers = {name: int(match[1]) for name in session.list() if (match := _MANIFEST.fullmatch(name))}
    return {_MAX_VERSION - number if len(name) == _REVERSED_NAME_LENGTH else number: name for name, number in numbers.items()}


def _version_json(
    handle: TableHandle, dataset: Any, branch: str | None, version: int, manifests: Mapping[int, str]
) -> dict[str, Any]:
    checkout = dataset
    if version != dataset.version:
        checkout = dataset.checkout_version(version if is_main(branch) else (branch, version))
    manifest = manifests.get(version, f"{_MAX_VERSION - version:020}.manifest")
    path = f"{handle.store_path}/{branch_path(branch)}_versions/{manifest}"
    try:
        handle.require_own_bases(checkout)
    except (ForeignLocationsFound, PermissionDenied):
        # Its manifest may be a copy of a hidden table's.
        return {"version": version, "manifest_path": path}
    info = checkout.get_version()
    # pylance returns the time of a version without a time zone, in local time.
    return {
        "version": version, "manifest_path": path, "timestamp_millis": round(info["timestamp"].timestamp() * 1000),
        "metadata": dict(info["metadata"]),
    }  # fmt: skip


def _parse_page_token(token: str) -> int:
    if not token.isdecimal():
        raise InvalidInput("invalid page_token", hint="start again without it")
    return int(token)


def _paginate(key: str, entries: Mapping[str, Any], page_token: str | None, limit: int | None) -> dict[str, Any]:
    names = [name for name in sorted(entries) if page_token is None or name > page_token]
    page = names if limit is None else names[: max(1, limit)]
    token = {"page_token": page[-1]} if len(page) < len(names) else {}
    return {key: {name: entries[name] for name in page}} | token


def _optional_field(key: str, value: Any) -> dict[str, Any]:
    return {} if value is None else {key: value}
