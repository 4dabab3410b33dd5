"""Locations in requests that are paths of the service's host: a table there is opened as the service's user.

That user can read more than the principal, so a path must be inside what the configuration gives to the source.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from federator.api.principals import LOCAL_PRINCIPAL, Principal
from federator.connector import InvalidInput, PermissionDenied
from federator.lance.foreign_locations import is_inside, resolve_location
from federator.model import local_path
from federator.registry import parse_connector_settings
from federator.settings import SourceSettings


def require_own_paths(
    principal: Principal, source: SourceSettings, locations: Iterable[str], roots: Iterable[str] = ()
) -> None:
    """Raise PermissionDenied if a location is a path of this host outside ``root`` and ``allowed_bases`` of the source.

    ``roots`` are further locations that are allowed. Symbolic links are resolved. The user of this machine can read its files without
    the service, and is not limited. Raise InvalidInput for any location with control characters: a line break at its end is hardly
    ever meant, and hides in lists.
    """
    locations = list(locations)
    for location in locations:
        if any(unicodedata.category(character) == "Cc" for character in location):
            raise InvalidInput(f"the location {location!r} contains a control character", hint="remove it")
    paths = [location for location in locations if _may_be_path(location)]
    if not paths or principal is LOCAL_PRINCIPAL:
        return
    settings = parse_connector_settings(source.spec)
    allowed = [resolve_location(base) for base in (settings.root, *settings.allowed_bases, *roots) if base]
    if not all(is_inside(resolve_location(path), allowed) for path in paths):
        raise PermissionDenied(
            f"a path of the service's host must be inside root or allowed_bases of {source.name}",
            hint="omit the location, or set allowed_bases in the section of the source",
        )


def _may_be_path(location: str) -> bool:
    # Some libraries ignore the host of a file URI.
    return local_path(location) is not None or location.strip().lower().startswith("file")
