"""Access to locations outside a table that it refers to: a principal needs a visible table at or above each of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

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

    The scopes must cover one of the declarations nearest to each location of ``foreign.outside``, at it or above. A nearer one that is
    hidden is the table to which the location belongs, whatever is declared around it. In an object store, the declaration's source
    must have the options with which ``source`` reads the location: what it could not open, it does not permit.

    The same holds for ``foreign.root``, the target of a symbolic link at the table itself. Instead, the target may be undeclared, if no
    table outside the scopes has a link to it or is inside it. ``resolve`` resolves symbolic links.
    """
    aliases = settings.location_aliases
    own_location = canonical_location(location, aliases) if location else None
    target = [spelling for spelling in foreign.root if spelling != own_location]
    *outside, nearest_to_target = _list_nearest_declarations(index, [*foreign.outside, target])

    def is_readable(spellings: Sequence[str], nearest: Sequence[TableRecord]) -> bool:
        return any(
            scopes.covers((table.source, *table.path)) and _opens_alike(settings, source, table.source, spellings[0])
            for table in nearest
        )

    if not all(map(is_readable, foreign.outside, outside)):
        return False
    if not target or is_readable(target, nearest_to_target):
        return True
    if nearest_to_target:
        return False
    # That the table with the link is visible is no permission for the target: another principal may have made the link.
    resolved_target = target[0]
    locations = datasets.list_tables_that_may_overlap(index, resolved_target, aliases)
    hidden = sorted({canonical for object_id, canonical in locations.items() if not scopes.covers(parse_path_key(object_id))})
    return not any(
        is_inside(resolved_target, [resolved]) or is_inside(resolved, [resolved_target]) for resolved in resolve(hidden)
    )


def _list_nearest_declarations(index: Index, locations: Sequence[Sequence[str]]) -> list[list[TableRecord]]:
    """Return the declarations nearest to each location, at it or above, in any of its spellings. Empty if there are none."""
    levels = [[*zip_longest(*([each, *parent_locations(each)] for each in spellings))] for spellings in locations]
    above = {each for levels_of_one in levels for level in levels_of_one for each in level if each is not None}
    with index.read() as connection:
        declared = records.list_declarations_at(connection, sorted(above))

    def find_nearest(levels_of_one: Sequence[Sequence[str | None]]) -> list[TableRecord]:
        for level in levels_of_one:
            tables = [table for each in level if each is not None for table in declared.get(each, ())]
            if tables:
                return tables
        return []

    return list(map(find_nearest, levels))


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
