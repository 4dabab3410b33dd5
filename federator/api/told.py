"""How fresh an answer is: what every answer about catalogs says of the sources that it speaks of, in one shape.

An answer about one source has its ``Freshness``; one about several has a list of them, by name. A source that was never crawled has
none. Of a source that the caller sees in part, it is that of the part.
"""

from __future__ import annotations

from collections.abc import Iterable

from federator.api import models as m
from federator.index import Index
from federator.index.freshness import freshness
from federator.model import parse_key
from federator.model.scopes import Scopes


def fresh(index: Index, scopes: Scopes, sources: Iterable[str | None]) -> list[m.Freshness]:
    """The freshness of some sources, as far as they are in the index and a scope shows something of them."""
    wanted = set(sources)
    if not wanted:
        return []
    return [m.Freshness.model_validate(found) for name, found in freshness(index, scopes).items() if name in wanted]


def sources_of(ids: Iterable[str]) -> set[str]:
    """The sources of some ids, paths from the tree's root in text form."""
    return {parse_key(each)[0] for each in ids if each}
