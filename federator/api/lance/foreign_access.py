"""Access to locations outside a table that it refers to: a principal needs a visible table at or above each of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from federator.lance.foreign_locations import ForeignLocations, Resolve, is_inside
from federator.model import LocationAliases, canonical_location, parent_locations, parse_path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.store import Index, records
from federator.views import datasets


def may_read_locations(
    index: Index, aliases: LocationAliases, scopes: Scopes, location: str | None, foreign: ForeignLocations, resolve: Resolve
) -> bool:
    """Return whether a principal may read the locations outside of the table at ``location`` that opening it would read.

    Each location of ``foreign.outside`` must be at or below a table that the scopes cover. The same holds for ``foreign.root``, the
    target of a symbolic link at the table itself. Instead, the target may be undeclared, if no table outside the scopes has a link
    to it. ``resolve`` resolves symbolic links.
    """
    if not _are_declared(index, foreign.outside, scopes):
        return False
    own_location = canonical_location(location, aliases) if location else None
    target = [spelling for spelling in foreign.root if spelling != own_location]
    if not target or _are_declared(index, [target], scopes):
        return True
    if _are_declared(index, [target], EVERYTHING):
        return False
    # That the table with the link is visible is no permission for the target: another principal may have made the link.
    resolved_target = target[0]
    locations = datasets.list_tables_that_may_overlap(index, resolved_target, aliases)
    hidden = sorted({canonical for object_id, canonical in locations.items() if not scopes.covers(parse_path_key(object_id))})
    return not any(is_inside(resolved_target, [resolved]) for resolved in resolve(hidden))


def _are_declared(index: Index, locations: Iterable[Sequence[str]], scopes: Scopes) -> bool:
    """Return whether the scopes cover a table at or above each location, in one of its spellings."""
    at_or_above = [
        {above for spelling in spellings for above in (spelling, *parent_locations(spelling))} for spellings in locations
    ]
    with index.read() as connection:
        declared = records.list_declarations_at(connection, sorted(set[str]().union(*at_or_above)), scopes).keys()
    return all(declared & each for each in at_or_above)
