"""Versions, tags and branches of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from federator.connector import InvalidInput
from federator.connector.errors import (
    TableBranchAlreadyExists,
    TableBranchNotFound,
    TableTagAlreadyExists,
    TableTagNotFound,
    TableVersionNotFound,
)
from federator.data.faults import FAULTS, as_ours
from federator.data.place import MAIN, Place, branch_path

# A manifest is named by its version, or by what is left of that to the largest 64-bit number, so that the newest is listed first.
_MANIFEST = re.compile(r"(\d+)\.manifest")
_LARGEST = (1 << 64) - 1


def versions(
    place: Place,
    *,
    branch: str | None = None,
    page_token: str | None = None,
    limit: int | None = None,
    descending: bool | None = None,
) -> dict[str, Any]:
    """A ``ListTableVersionsResponse``: oldest first unless ``descending``; the token is the last version of the page."""
    with place.opened(branch=branch) as dataset:
        found = [version["version"] for version in dataset.version_refs()]
        found.sort(reverse=bool(descending))
        if page_token is not None:
            last = _number(page_token)
            found = [version for version in found if (version < last if descending else version > last)]
        page = found if limit is None else found[: max(1, limit)]
        manifests = _manifests(place, branch)
        told = [_version(place, dataset, branch, version, manifests) for version in page]
    return {"versions": told} | ({"page_token": str(page[-1])} if len(page) < len(found) else {})


def version(place: Place, *, version: int | None = None, branch: str | None = None) -> dict[str, Any]:
    """A ``DescribeTableVersionResponse``; the newest where none is asked for."""
    with place.opened(version, branch) as dataset:
        return {"version": _version(place, dataset, branch, dataset.version, _manifests(place, branch))}


def restore(place: Place, *, version: int, branch: str | None = None) -> dict[str, Any]:
    """Makes an old version the newest: a ``RestoreTableResponse``."""
    with place.opened(version, branch) as dataset:
        dataset.restore()
        return transaction_of(dataset)


def transaction_of(dataset: Any) -> dict[str, Any]:
    """The id of the commit that made the dataset's version, where it is told."""
    made = dataset.read_transaction(dataset.version)
    return {"transaction_id": made.uuid} if made is not None else {}


def tags(place: Place, *, page_token: str | None = None, limit: int | None = None) -> dict[str, Any]:
    """A ``ListTableTagsResponse``, by name."""
    with place.opened() as dataset:
        found = {
            name: {"version": tag["version"], "manifestSize": tag["manifest_size"]} | _given("branch", tag["branch"])
            for name, tag in dataset.tags.list().items()
        }
    return _page("tags", found, page_token, limit)


def tag_version(place: Place, *, tag: str) -> dict[str, Any]:
    with place.opened() as dataset:
        found = _tag(dataset, tag)
        return {"version": found["version"]} | _given("branch", found["branch"])


def create_tag(place: Place, *, tag: str, version: int, branch: str | None = None) -> dict[str, Any]:
    """Names a version. Raises TableTagAlreadyExists, TableVersionNotFound, TableBranchNotFound."""
    with place.opened() as dataset:
        if tag in dataset.tags.list():
            raise TableTagAlreadyExists(f"the table has a tag {tag!r} already")
        dataset.tags.create(tag, _reference(dataset, version, branch))
    return {}


def update_tag(place: Place, *, tag: str, version: int, branch: str | None = None) -> dict[str, Any]:
    with place.opened() as dataset:
        _tag(dataset, tag)
        dataset.tags.update(tag, _reference(dataset, version, branch))
    return {}


def delete_tag(place: Place, *, tag: str) -> dict[str, Any]:
    with place.opened() as dataset:
        _tag(dataset, tag)
        dataset.tags.delete(tag)
    return {}


def branches(place: Place, *, page_token: str | None = None, limit: int | None = None) -> dict[str, Any]:
    """A ``ListTableBranchesResponse``, by name; the main branch has no row."""
    with place.opened() as dataset:
        found = {
            name: {
                "parentVersion": told["parent_version"],
                "createAt": told["create_at"],
                "manifestSize": told["manifest_size"],
            }
            | _given("parentBranch", told["parent_branch"])
            | _given("metadata", told["metadata"] or None)
            for name, told in dataset.branches.list().items()
        }
    return _page("branches", found, page_token, limit)


def create_branch(
    place: Place, *, name: str, from_branch: str | None = None, from_version: int | None = None
) -> dict[str, Any]:
    """Raises TableBranchAlreadyExists, TableBranchNotFound and TableVersionNotFound of what it shall start from."""
    with place.opened(from_version, from_branch) as dataset:
        if name == MAIN or name in dataset.branches.list():
            raise TableBranchAlreadyExists(f"the table has a branch {name!r} already")
        on_main = from_branch in (None, "", MAIN)
        dataset.create_branch(name, dataset.version if on_main else (from_branch, dataset.version), place.options)
    return {}


def delete_branch(place: Place, *, name: str) -> dict[str, Any]:
    with place.opened() as dataset:
        if name not in dataset.branches.list():
            raise TableBranchNotFound(f"the table has no branch {name!r}")
        dataset.branches.delete(name)
    return {}


def _tag(dataset: Any, tag: str) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = dataset.tags.list()
    if tag not in found:
        raise TableTagNotFound(f"the table has no tag {tag!r}")
    return found[tag]


def _reference(dataset: Any, version: int, branch: str | None) -> Any:
    on_main = branch in (None, "", MAIN)
    if not on_main and branch not in dataset.branches.list():
        raise TableBranchNotFound(f"the table has no branch {branch!r}")
    try:
        dataset.checkout_version(version if on_main else (branch, version))
    except FAULTS as error:
        reference = as_ours(error)
        if isinstance(reference, InvalidInput):
            raise reference from None
        raise TableVersionNotFound(f"the table has no version {version} to name") from None
    return version if on_main else (branch, version)


def _manifests(place: Place, branch: str | None) -> dict[int, str]:
    """The names of the manifests by version, as the store lists them."""
    from lance.file import LanceFileSession

    session = LanceFileSession(f"{place.uri}/{branch_path(branch)}_versions", storage_options=place.options)
    numbers = {name: int(match[1]) for name in session.list() if (match := _MANIFEST.fullmatch(name))}
    return {_LARGEST - number if len(name) == _LENGTH else number: name for name, number in numbers.items()}


_LENGTH = len(f"{_LARGEST}.manifest")


def _version(place: Place, dataset: Any, branch: str | None, version: int, manifests: Mapping[int, str]) -> dict[str, Any]:
    at = (
        dataset
        if version == dataset.version
        else dataset.checkout_version(version if not branch_path(branch) else (branch, version))
    )
    told = at.get_version()
    path = f"{place.key}/{branch_path(branch)}_versions/{manifests.get(version, f'{_LARGEST - version:020}.manifest')}"
    # pylance gives the time of a version without a zone, as this machine's local time.
    return {
        "version": version, "manifest_path": path, "timestamp_millis": round(told["timestamp"].timestamp() * 1000),
        "metadata": dict(told["metadata"]),
    }  # fmt: skip


def _number(token: str) -> int:
    if not token.isdecimal():
        raise InvalidInput("page_token is not one of ours", hint="begin again without it")
    return int(token)


def _page(what: str, found: Mapping[str, Any], page_token: str | None, limit: int | None) -> dict[str, Any]:
    names = [name for name in sorted(found) if page_token is None or name > page_token]
    page = names if limit is None else names[: max(1, limit)]
    token = {"page_token": page[-1]} if len(page) < len(names) else {}
    return {what: {name: found[name] for name in page}} | token


def _given(key: str, value: Any) -> dict[str, Any]:
    return {} if value is None else {key: value}
