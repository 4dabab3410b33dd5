"""Freshness of the sources that a response is based on.

A response about one source has its ``Freshness``. A response about several sources has a list, ordered by name. A source that was
never crawled has none. If the principal sees only a part of a source, the freshness is that of this part.
"""

from __future__ import annotations

from collections.abc import Iterable

from federator.model import parse_path_key
from federator.model.scopes import Scopes
from federator.store import Index
from federator.views.freshness import Freshness, list_freshness


def list_source_freshness(index: Index, scopes: Scopes, sources: Iterable[str | None]) -> list[Freshness]:
    """Return the freshness of the given sources. Sources that are not in the index, or are invisible to ``scopes``, are left out."""
    names = set(sources)
    if not names:
        return []
    return [freshness for name, freshness in list_freshness(index, scopes).items() if name in names]


def sources_of_ids(ids: Iterable[str]) -> set[str]:
    """Return the source names of object ids."""
    return {parse_path_key(object_id)[0] for object_id in ids if object_id}
