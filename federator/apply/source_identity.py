"""Checked source identities: open catalogs before a write, and before an observation that may prove absence."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from federator.connector import Catalog, IdentityChanged, SourceSpec
from federator.model import Path
from federator.planning.identity import IdentityReading, judge_identity
from federator.registry import open_catalog
from federator.store import Index, identities


@contextmanager
def opened_as_known(index: Index, spec: SourceSpec, namespaces: Collection[Path] | None = ()) -> Iterator[Catalog]:
    """Open a source whose identity is accepted. ``namespaces`` are those of ``Catalog.identity``.

    Raise IdentityChanged if another catalog responds, and CatalogError if the identity cannot be read.
    """
    with open_catalog(spec) as catalog:
        check_identity(index, catalog, namespaces)
        yield catalog


def check_identity(index: Index, catalog: Catalog, namespaces: Collection[Path] | None = ()) -> None:
    """Read the catalog's identity, and raise IdentityChanged unless it is accepted. A source's first identity is accepted."""
    readings = [IdentityReading(catalog.identity(namespaces))]
    with index.read() as connection:
        verdict = judge_identity(catalog.source, identities.get_accepted(connection, catalog.source), readings)
    if verdict.first_values or verdict.unknown:
        with index.write() as connection:
            verdict = identities.judge_readings(connection, catalog.source, readings, crawl=False)
    if verdict.problem is not None:
        raise IdentityChanged(verdict.problem)
