"""Declare: plan the declaration of tables in storage, for example orphans, in some sources."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from federator.connector import Capabilities, Catalog, SourceSpec, Unsupported
from federator.lance.columns import declared_schema
from federator.lance.inspection import Inspection
from federator.model import Path, canonical_location, iter_ancestors, local_path, parent_locations
from federator.planning.rule import MirrorRule
from federator.planning.user_declarations import (
    DeclarationCandidate,
    build_user_rule,
    derive_path,
    plan_user_declarations,
    user_plan_target,
)
from federator.registry import open_catalog, source_capabilities
from federator.runtime.text import format_count
from federator.settings import Settings
from federator.stages.context import RunContext
from federator.stages.plan import save_plan
from federator.stages.shared_permissions import Permissions, restrict_to_declaring
from federator.stages.source_stores import find_access
from federator.store import records, roots, verifications
from federator.store.verifications import DueLocation

if TYPE_CHECKING:
    from federator.pipeline.verify import InspectorProcess


@dataclass(frozen=True, slots=True)
class DeclareSpec:
    """The locations (in any spelling) to declare, the sources to declare them in, and the ``template`` of their names.

    ``template`` is described in ``planning.user_declarations.derive_path``. If ``roots`` is False, locations are inspected with the
    target's storage options, even below a storage root.
    """

    locations: Sequence[str]
    targets: Sequence[str]
    template: str | None = None
    roots: bool = True


@dataclass(frozen=True, slots=True)
class _StoredLocation:
    """A location, and the spec with whose storage options it is inspected: that of its ``root``, or the target's without one."""

    location: str
    canonical: str
    storage_spec: SourceSpec
    root: str | None = None
    #: a scan has found a table here
    is_scanned: bool = False


@dataclass(frozen=True, slots=True)
class _InspectedLocation:
    location: str
    canonical: str
    inspection: Inspection


def rule_for_plan(settings: Settings, name: str) -> MirrorRule:
    """Return the rule of a plan: a mirror's, or that of a user's declarations. Raise ConfigError."""
    target = user_plan_target(name)
    return settings.mirror_rule(name) if target is None else build_user_rule(settings.source(target).name)


def plan_declarations(context: RunContext, spec: DeclareSpec) -> None:
    """Plan the declarations of each source. A source that cannot be planned does not stop the others."""
    for target in spec.targets:
        with context.record_errors(f"declare into {target}"), context.stage("plan", f"declare into {target}") as finish:
            _plan_target(context, spec, target)
            plan = context.result.plans[-1]
            finish(
                "held" if plan.held else "ok",
                f"{format_count(len(plan.changes), 'change')}, {format_count(len(plan.refusals), 'refusal')}",
            )


def _plan_target(context: RunContext, declare_spec: DeclareSpec, target: str) -> None:
    spec = context.source_spec(target)
    capabilities = source_capabilities(spec)
    if not capabilities.writes_tables:
        raise Unsupported(f"{target}: this catalog cannot declare tables")
    with open_catalog(spec) as catalog:
        if obstacle := catalog.find_declaration_obstacle():
            raise Unsupported(f"{target}: {obstacle}")
        candidates = list(_build_candidates(context, declare_spec, target, catalog, capabilities))
    with context.index.read() as connection:
        revision = records.published_revision(connection, target)
    plan = plan_user_declarations(target, capabilities, candidates, revision=revision)
    save_plan(context, plan)
    context.result.plans.append(plan)


def _build_candidates(
    context: RunContext, spec: DeclareSpec, target: str, catalog: Catalog, capabilities: Capabilities
) -> Iterator[DeclarationCandidate]:
    for inspected in _inspect_locations(context, spec, context.source_spec(target)):
        path = catalog.canonical_path(derive_path(spec.template, inspected.canonical, capabilities.min_depth))
        observation = catalog.observe(path)
        with context.index.read() as connection:
            declared = records.list_declarations_at(connection, [inspected.canonical]).get(inspected.canonical, [])
        other_paths = [table.key for table in declared if table.source == target and table.path != path]
        yield DeclarationCandidate(
            path, inspected.location, inspected.canonical, inspected.inspection.state, inspected.inspection.message,
            observation.record, observation.foreign, other_paths, list(_missing_namespaces(catalog, path)),
            declared_schema(json.loads(inspected.inspection.schema or "[]")) if capabilities.keeps_columns else None,
        )  # fmt: skip


def _missing_namespaces(catalog: Catalog, path: Path) -> Iterator[Path]:
    for namespace in sorted(filter(None, iter_ancestors(path)), key=len):
        if catalog.find_namespace(namespace) is None:
            yield namespace


def _inspect_locations(context: RunContext, spec: DeclareSpec, target: SourceSpec) -> Iterator[_InspectedLocation]:
    """Inspect each location with the storage options of its root, or of the target if it is below no root."""
    from federator.pipeline.verify import InspectorProcess

    with ExitStack() as stack:
        # One process for all locations of a storage: to start it takes longer than to inspect a location.
        inspectors: dict[str | None, InspectorProcess] = {}
        for text in spec.locations:
            context.require_running()
            stored = _find_storage(context, spec, text, target)
            if stored.root not in inspectors:
                inspector = InspectorProcess(stored.storage_spec, context.settings.verify.timeout)
                inspectors[stored.root] = stack.enter_context(inspector)
            yield _InspectedLocation(stored.location, stored.canonical, _inspect(context, inspectors[stored.root], stored))


def _find_storage(context: RunContext, spec: DeclareSpec, text: str, target: SourceSpec) -> _StoredLocation:
    canonical = canonical_location(text, context.settings.location_aliases)
    # In Lance's spelling: Lance opens s3://, but neither s3a:// nor https://.
    location = text if local_path(text) is not None else canonical
    if not spec.roots:
        return _StoredLocation(location, canonical, target)
    with context.index.read() as connection:
        scanned = roots.find_root_table(connection, canonical)
    root = _find_root(context.settings, canonical)
    return _StoredLocation(
        scanned.location if scanned is not None else location, canonical,
        context.settings.root_spec(root) if root is not None else target, root, is_scanned=scanned is not None,
    )  # fmt: skip


def _find_root(settings: Settings, canonical: str) -> str | None:
    """Return the name of the nearest root at or above a canonical location. None if there is none."""
    candidates = [canonical, *parent_locations(canonical)]
    names_by_location = {
        canonical_location(root.location, settings.location_aliases): name for name, root in settings.roots.items()
    }
    return next((names_by_location[location] for location in candidates if location in names_by_location), None)


def _inspect(context: RunContext, inspector: InspectorProcess, stored: _StoredLocation) -> Inspection:
    """Inspect a location, and save the result if it is a table or was one when its root was scanned."""
    if inspector.is_silent(stored.location):
        return Inspection("unreachable", "not inspected: its store did not respond several times in a row")
    own, access = Permissions.of_spec(stored.storage_spec), find_access(stored.storage_spec)
    shared = restrict_to_declaring(context.index, context.settings, own, access, stored.canonical)
    inspector.restrict(DueLocation(stored.canonical, stored.location, shared.allowed_bases, shared.mounts))
    inspection = inspector.inspect(stored.location)
    if stored.is_scanned or inspection.state == "valid":
        with context.index.write() as connection:
            verifications.save_inspection(
                connection, inspection, canonical=stored.canonical, location=stored.location,
                through=stored.storage_spec.name, access=access,
            )  # fmt: skip
    return inspection


def check_declare_spec(settings: Settings, spec: DeclareSpec) -> None:
    """Raise ConfigError for a source that is not configured, and for a template that fits none of the locations."""
    for target in spec.targets:
        settings.source(target)
    for text in spec.locations:
        if spec.template is not None:
            derive_path(spec.template, canonical_location(text, settings.location_aliases), 0)
