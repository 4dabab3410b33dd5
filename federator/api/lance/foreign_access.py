"""Access to locations outside a table that it refers to: a principal needs a visible table at or above each of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest

from federator.connector import FederatorError
from federator.lance.foreign_locations import ForeignLocations, Resolve, is_inside
from federator.lance.opening import opening_options
from federator.model import TableRecord, canonical_location, local_path, parent_locations, parse_path_key
from federator.model.scopes import Scopes
from federator.registry import get_connector
from federator.settings import Settings, SourceSettings
from federator.store import Index, records
from federator.views import datasets


def may_read_locations(
    index: Index,
    settings: Settings,
    scopes: Scopes,
    source: SourceSettings,
    location: str | None,
    foreign: ForeignLocations,
    resolve: Resolve,
) -> bool:
    """Return whether a principal may read the locations outside of the table at ``location`` that opening it would read.

    Each location of ``foreign.outside`` must be at or below a table that the scopes cover (``_are_readable``). The same holds for
    ``foreign.root``, the target of a symbolic link at the table itself. Instead, the target may be undeclared, if no table outside
    the scopes has a link to it or is inside it. ``resolve`` resolves symbolic links.
    """
    if not _are_readable(index, settings, scopes, source, foreign.outside):
        return False
    aliases = settings.location_aliases
    own_location = canonical_location(location, aliases) if location else None
    target = [spelling for spelling in foreign.root if spelling != own_location]
    if not target or _are_readable(index, settings, scopes, source, [target]):
        return True
    if any(_list_nearest_declarations(index, [target])[0]):
        return False
    # That the table with the link is visible is no permission for the target: another principal may have made the link.
    resolved_target = target[0]
    locations = datasets.list_tables_that_may_overlap(index, resolved_target, aliases)
    hidden = sorted({canonical for object_id, canonical in locations.items() if not scopes.covers(parse_path_key(object_id))})
    return not any(
        is_inside(resolved_target, [resolved]) or is_inside(resolved, [resolved_target]) for resolved in resolve(hidden)
    )


def _are_readable(
    index: Index, settings: Settings, scopes: Scopes, source: SourceSettings, locations: Sequence[Sequence[str]]
) -> bool:
    """Return whether the scopes cover, for each location, one of the declarations nearest to it, at it or above.

    A nearer one that is hidden is the table to which the location belongs, whatever is declared around it. In an object store, the
    declaration's source must have the options with which ``source`` reads the location: what it could not open, it does not permit.
    """
    return all(
        any(
            scopes.covers((table.source, *table.path)) and _opens_alike(settings, source, table.source, spellings[0])
            for table in nearest
        )
        for spellings, nearest in zip(locations, _list_nearest_declarations(index, locations), strict=True)
    )


def _list_nearest_declarations(index: Index, locations: Sequence[Sequence[str]]) -> list[list[TableRecord]]:
    """Return the declarations nearest to each location, at it or above, in any of its spellings. Empty if there are none."""
    at_or_above = [[[spelling, *parent_locations(spelling)] for spelling in spellings] for spellings in locations]
    with index.read() as connection:
        declared = records.list_declarations_at(connection, sorted({*chain.from_iterable(chain.from_iterable(at_or_above))}))
    return [
        next(
            (
                found
                for level in zip_longest(*spellings)
                if (found := [table for above in level for table in declared.get(above or "", ())])
            ),
            [],
        )
        for spellings in at_or_above
    ]


def _opens_alike(settings: Settings, source: SourceSettings, other: str, location: str) -> bool:
    """Return whether two sources open a location with equal options. Paths are opened by this service itself."""
    if other == source.name or local_path(location) is not None:
        return True
    if other not in settings.sources:
        return False
    try:
        return _opening_options(source, location) == _opening_options(settings.sources[other], location)
    except FederatorError:
        return False


def _opening_options(source: SourceSettings, location: str) -> dict[str, str]:
    spec = source.spec
    return opening_options(get_connector(spec.impl).parse_settings(spec.properties), location)
