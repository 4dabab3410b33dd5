"""Locations outside a table that its files refer to: base paths of shallow clones and branches, and symbolic links.

Opening a table would read them with the source's options, also for principals who may not see what is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from federator.connector import PermissionDenied, ServiceUnavailable
from federator.lance.pinned_directory import PinnedDirectory
from federator.model import canonical_location, is_ambiguous, local_path

# What Lance, which parses URLs as browsers do, may read otherwise than Python: a home directory, steps to parents, white space at the
# ends, and backslashes, queries and fragments of a URL.
_UNCLEAR = re.compile(r"^~|(^|/)(\.|%2e){1,2}(/|$)|[\x00-\x1f\x7f]|^\s|\s$|^[a-z][a-z0-9+.-]*:.*[\\?#]", re.IGNORECASE)

# Whether a principal may read a location is one query. Tables have few links, if any.
_MAX_TARGETS = 1000


@dataclass(frozen=True)
class ForeignLocations:
    """Locations that opening a table would read. ``root`` is the target of a table that is reached through a symbolic link.

    Each is a list of canonical spellings, first the one without symbolic links. The other one is below the mount of the table.
    """

    outside: Sequence[Sequence[str]] = ()
    root: Sequence[str] = ()


#: Returns canonical locations with the symbolic links of paths resolved, in their order.
Resolve = Callable[[Sequence[str]], Sequence[str]]
#: Decides whether a table may refer to locations outside it.
MayRead = Callable[[ForeignLocations, Resolve], bool]


def may_read_nothing(_foreign: ForeignLocations, _resolve: Resolve) -> bool:
    """Return False: no location outside the table may be read."""
    return False


class ForeignLocationsFound(Exception):
    """A table refers to locations outside it that are not known to be allowed."""

    def __init__(self, locations: ForeignLocations) -> None:
        super().__init__(locations)
        self.locations = locations


def require_own_files(
    location: str,
    allowed: Sequence[str],
    mounts: Sequence[str] = (),
    pinned: PinnedDirectory | None = None,
    permitted: Sequence[str] = (),
) -> None:
    """Raise ForeignLocationsFound if a table is reached through a symbolic link, or contains links to outside of the table.

    ``allowed`` are prefixes of locations that the links may have as targets. Links in these targets count, too. Object stores have no
    links. ``mounts`` are roots of the sources that count, as URIs or absolute paths: links at and above all those that the table is
    below are the operator's, and part of the table's own location. Without one, only the table's own directory must not be a link.
    ``pinned`` is the directory that will be opened, if it is not looked for by its path. ``permitted`` are further prefixes. An
    earlier call resolved them, because a directory of such a name may have been replaced by a link since then.

    Raise PermissionDenied, ServiceUnavailable if links cannot be looked for.
    """
    path = local_path(location)
    if path is None:
        return
    if pinned is not None and pinned.target is None:
        return
    own, prefixes = resolve_pinned(location, pinned), [*map(resolve_location, allowed), *permitted]
    root = own if _is_reached_by_link(path, mounts, pinned) else None
    directory = path if pinned is None else pinned.path
    _require_allowed(location, _list_targets({directory}, [own, *prefixes]), root, own, prefixes)


def require_no_new_table_behind_link(location: str, mounts: Sequence[str], pinned: PinnedDirectory | None = None) -> None:
    """Raise PermissionDenied if ``location`` has no table and is reached through a link that is not the operator's
    (``require_own_files``): the link could lead into any directory that this service may write, also the root of another source."""
    path = local_path(location)
    if path is None or (pinned is not None and pinned.target is None and not os.path.lexists(path)):
        return
    versions = Path(path if pinned is None else pinned.path, "_versions")
    if not versions.exists() and _is_reached_by_link(path, mounts, pinned):
        raise PermissionDenied("the location is a symbolic link, and no table is created through it", hint="declare its target")


def require_no_link(location: str, mounts: Sequence[str], pinned: PinnedDirectory | None = None) -> None:
    """Raise PermissionDenied if a path leads through a symbolic link that is not the operator's (``require_own_files``).

    Outside of all mounts, no link is the operator's. What a link leads to may be a table of another source, which no index knows yet.
    """
    path = local_path(location)
    if path is None:
        return
    if _has_link_below(_list_mounts_above(path, mounts) or ["/"], path, pinned):
        raise PermissionDenied(
            f"the data at {location} is reached through a symbolic link, and is not deleted", hint="declare the link's target"
        )


def require_own_bases(
    location: str,
    dataset: Any,
    allowed: Sequence[str],
    pinned: PinnedDirectory | None = None,
    permitted: Sequence[str] = (),
) -> None:
    """Raise ForeignLocationsFound if base paths of an opened table, or what links in them lead to, are outside of it and not below one
    of ``allowed``. Raise PermissionDenied, ServiceUnavailable as ``require_own_files`` does, and for a base path of unclear meaning."""
    paths = [base.path for base in dataset.base_paths().values()]
    if any(_UNCLEAR.search(path) or is_ambiguous(path) for path in paths):
        raise PermissionDenied("a base path of the table has a spelling that is not read")
    own, prefixes = resolve_pinned(location, pinned), [*map(resolve_location, allowed), *permitted]
    bases = set(map(resolve_location, paths))
    readable = [own, *prefixes]
    directories = {path for base in bases if is_inside(base, readable) and (path := local_path(base)) is not None}
    _require_allowed(location, bases | _list_targets(directories, readable), None, own, prefixes)


def list_lost_locations(
    location: str, canonical: str, declared: Iterable[str], pinned: PinnedDirectory | None = None
) -> list[str]:  # fmt: skip
    """Return the declared canonical locations that lose data if the table at ``location`` is deleted, also through symbolic links.

    That is also the one of a table to whose files the location belongs, such as one of its branches.

    ``canonical`` is the table's own canonical location, with aliases resolved. ``pinned`` is as for ``require_own_files``.
    """
    path = local_path(location) if pinned is None else pinned.path
    own = {resolve_pinned(location, pinned), resolve_location(canonical)}
    links = {resolve_location(link) for link in _iter_links(path)} if path is not None else set()
    outside = {link for link in links if not is_inside(link, own)}

    def is_lost(resolved: str) -> bool:
        is_around = any(is_inside(link, [resolved]) for link in outside) or any(is_part_of(one, resolved) for one in own)
        return is_around or is_inside(resolved, own | outside)

    return [written for written in declared if is_lost(resolve_location(written))]


def resolve_location(location: str) -> str:
    """Return the canonical location, with the symbolic links of a path resolved as far as they can be read."""
    path = local_path(location)
    # A null character cannot be part of a path, but any catalog can declare one.
    return canonical_location(location if path is None or "\0" in path else _real_path(path))


def resolve_pinned(location: str, pinned: PinnedDirectory | None) -> str:
    """Return ``resolve_location``, of the directory that is pinned if there is one."""
    return resolve_location(location) if pinned is None or pinned.target is None else canonical_location(pinned.target)


def _real_path(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, RecursionError):
        # A link in a directory that this service may not read, or more links than the kernel follows. What is behind them, this service
        # cannot open either.
        return os.path.normpath(path)


def is_inside(location: str, prefixes: Iterable[str]) -> bool:
    """Return whether a canonical location is one of the canonical ``prefixes``, or below one."""
    return any(location == prefix or location.startswith(prefix.rstrip("/") + "/") for prefix in prefixes)


def is_part_of(location: str, table: str) -> bool:
    """Return whether a canonical location is among the files of the table at another one: in its data, a branch, its manifests."""
    return is_inside(location, [table]) and is_file_of_table(location[len(table) :].lstrip("/"))


def is_file_of_table(path: str) -> bool:
    """Return whether a path below a table's location is Lance's own. Its names begin with _ or a dot, except data and branches."""
    name = path.partition("/")[0]
    return name[:1] in ("_", ".") or name in ("data", "tree")


def _is_reached_by_link(path: str, mounts: Sequence[str], pinned: PinnedDirectory | None) -> bool:
    """Return whether the table's directory or a directory between it and a mount is a link."""
    # Path.is_symlink raises for a path that is too long.
    is_link = os.path.islink(path)  # noqa: PTH114
    above = _list_mounts_above(path, mounts) or [str(Path(os.path.normpath(path)).parent)]
    return is_link or _has_link_below(above, path, pinned)


def _has_link_below(starts: Sequence[str], path: str, pinned: PinnedDirectory | None) -> bool:
    """Return whether a link is in the part of a path that is below one of the normal paths ``starts``."""
    target = pinned.target if pinned is not None and pinned.target is not None else _real_path(path)
    normal = os.path.normpath(path)
    return any(target != os.path.normpath(f"{_real_path(start).rstrip('/')}/{normal[len(start) :]}") for start in starts)


def _list_mounts_above(path: str, mounts: Sequence[str]) -> list[str]:
    normal = os.path.normpath(path)
    paths = (os.path.normpath(mount) for mount in map(local_path, mounts) if mount is not None)
    return [mount for mount in paths if is_inside(normal, [mount])]


def _list_targets(directories: Iterable[str], readable: Sequence[str]) -> set[str]:
    """Return the canonical locations to which links in directories lead, and those in what they lead to, if it is ``readable``."""
    targets: set[str] = set()
    unread = list(directories)
    while unread:
        new_targets = {resolve_location(link) for link in _iter_links(unread.pop())} - targets
        targets |= new_targets
        if len(targets) > _MAX_TARGETS:
            raise PermissionDenied(f"the table has links to more than {_MAX_TARGETS:,} locations, and is not read")
        unread += [path for target in new_targets if is_inside(target, readable) and (path := local_path(target)) is not None]
    return targets


def _require_allowed(location: str, targets: set[str], root: str | None, own: str, prefixes: Sequence[str]) -> None:
    foreign = tuple(sorted(target for target in targets if not is_inside(target, [own, *prefixes])))
    linked_root = root if root is not None and not is_inside(root, prefixes) else None
    if foreign or linked_root is not None:
        spellings = tuple(_list_spellings(location, foreign_location) for foreign_location in foreign)
        linked = _list_spellings(location, linked_root) if linked_root is not None else ()
        raise ForeignLocationsFound(ForeignLocations(spellings, linked))


def _list_spellings(location: str, resolved: str) -> tuple[str, ...]:
    """Return a resolved location, and the one below the mount through which the table at ``location`` was found, if there is one."""
    written, path = local_path(location), local_path(resolved)
    if written is None or path is None:
        return (resolved,)
    mount, target = Path(written).parent, Path(_real_path(str(Path(written).parent)))
    while mount.name and mount.name == target.name:
        mount, target = mount.parent, target.parent
    inside = Path(path).is_relative_to(target) and mount != target
    return (resolved, canonical_location(str(mount / Path(path).relative_to(target)))) if inside else (resolved,)


def _iter_links(directory: str) -> Iterator[str]:
    """Yield the symbolic links in a directory and below. Raise PermissionDenied, ServiceUnavailable if one cannot be listed."""
    unread = [directory]
    while unread:
        links, directories = _list_directory(unread.pop())
        yield from links
        unread += directories


def _list_directory(directory: str) -> tuple[list[str], list[str]]:
    """Return the symbolic links and the directories in a directory."""
    links, directories = [], []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_symlink():
                    links.append(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    directories.append(entry.path)
    except (FileNotFoundError, NotADirectoryError):
        # Opening the table reports what is absent.
        pass
    except PermissionError as error:
        # Lance opens files by their names, also in a directory that may not be listed.
        raise PermissionDenied("a directory of the table cannot be listed, so links in it are unknown") from error
    except OSError as error:
        raise ServiceUnavailable(f"a directory of the table cannot be listed: {error.strerror}") from error
    return links, directories
