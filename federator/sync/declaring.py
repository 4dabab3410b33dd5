"""Declare: a physical table, an orphan for one, becomes a plan that declares it in some sources."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from federator.connector import Catalog, NamespaceNotFound, SourceSpec, Unsupported
from federator.index import datasets, records, roots
from federator.model import Path, ancestors, canonical_location, local_path, path_key, places_above
from federator.planning.declaring import Candidate, named, plan_declarations, rule_into, target_of
from federator.planning.rule import MirrorRule
from federator.registry import capabilities, open_catalog
from federator.settings import Settings
from federator.sync.mirroring import save
from federator.sync.result import counted
from federator.sync.work import Work


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which places (locations in any spelling) into which sources, under names by a ``template`` (``planning.declaring.named``).

    Without ``roots``, places are opened with what the target is opened with, also where they lie under a storage root.
    """

    places: Sequence[str]
    into: Sequence[str]
    template: str | None = None
    roots: bool = True


@dataclass(frozen=True, slots=True)
class _Opened:
    location: str
    canonical: str
    found: dict[str, Any]


def rule_of(settings: Settings, name: str) -> MirrorRule:
    """The rule that a plan stands under: a mirror's, or that of a person's declarations. Raises ConfigError."""
    target = target_of(name)
    return settings.rule(name) if target is None else rule_into(settings.source(target).name)


def declare(work: Work, wanted: Wanted) -> None:
    """Plans the declarations of each source; one that cannot be planned does not stop the others."""
    for target in wanted.into:
        with work.recording(f"declare into {target}"), work.step("plan", f"declare into {target}") as done:
            _plan(work, wanted, target)
            made = work.result.plans[-1]
            done(
                "held" if made.held else "ok",
                f"{counted(len(made.changes), 'change')}, {counted(len(made.refusals), 'refusal')}",
            )


def _plan(work: Work, wanted: Wanted, target: str) -> None:
    spec = work.spec(target)
    able = capabilities(spec)
    if not able.writes_tables:
        raise Unsupported(f"{target}: this catalog cannot declare tables")
    with open_catalog(spec) as catalog:
        candidates = list(_candidates(work, wanted, target, catalog, able.min_depth))
    with work.index.read() as connection:
        revision = records.published(connection, target)
    made = plan_declarations(target, able, candidates, revision=revision)
    save(work, made)
    work.result.plans.append(made)


def _candidates(work: Work, wanted: Wanted, target: str, catalog: Catalog, levels: int) -> Iterator[Candidate]:
    for opened in _opened(work, wanted, work.spec(target)):
        path = catalog.canonical_path(named(wanted.template, opened.canonical, levels))
        seen = catalog.observe(path)
        with work.index.read() as connection:
            declared = datasets.declared_at(connection, [opened.canonical]).get(opened.canonical, [])
        others = [row["path"] for row in declared if row["source"] == target and row["path"] != path_key(path)]
        yield Candidate(
            path, opened.location, opened.canonical, opened.found["state"], opened.found["message"], seen.record, seen.foreign, others,
            list(_missing(catalog, path)),
        )  # fmt: skip


def _missing(catalog: Catalog, path: Path) -> Iterator[Path]:
    for namespace in sorted(filter(None, ancestors(path)), key=len):
        try:
            catalog.describe_namespace(namespace)
        except NamespaceNotFound:
            yield namespace


def _opened(work: Work, wanted: Wanted, target: SourceSpec) -> Iterator[_Opened]:
    """Each place, opened by what its root is opened with, or the target where it lies under no root."""
    from federator.pipeline.verify import Opener

    for text in wanted.places:
        canonical = canonical_location(text, work.settings.aliases)
        with work.index.read() as connection:
            known = roots.at(connection, canonical) if wanted.roots else None
        # As Lance opens it: it knows s3://, and neither s3a:// nor https://.
        location = known.location if known is not None else text if local_path(text) is not None else canonical
        name = _root_above(work.settings, canonical) if wanted.roots else None
        spec = work.settings.root_spec(name) if name is not None else target
        with Opener(spec, work.settings.verify.timeout) as opener:
            found = opener.look(location)
        if known is not None or found["state"] == "valid":
            row = {
                "canonical": canonical,
                "location": location,
                "checked_at": time.time(),
                "checked_through": spec.name,
                **found,
            }
            with work.index.write() as connection:
                datasets.save(connection, [row])
        yield _Opened(location, canonical, found)


def _root_above(settings: Settings, canonical: str) -> str | None:
    above = [canonical, *places_above(canonical)]
    found = {canonical_location(root.location, settings.aliases): name for name, root in settings.roots.items()}
    return next((found[place] for place in above if place in found), None)


def check(settings: Settings, wanted: Wanted) -> None:
    """Raises ConfigError for a source that is not configured, and for a template that fits none of the places."""
    for target in wanted.into:
        settings.source(target)
    for text in wanted.places:
        if wanted.template is not None:
            named(wanted.template, canonical_location(text, settings.aliases), 0)
