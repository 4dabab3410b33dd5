"""Plans of user declarations: declare physical tables in a catalog, without owning them. Pure.

The declarations carry no ownership marker and get no ledger entry (ADR 9). They belong to the user who asked, as if they had been
made with the catalog's own tools. A mirror treats them as ordinary origins and never changes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from federator.connector import Capabilities, ConfigError
from federator.model import NamespaceRecord, Path, TableRecord, parent_locations, path_key
from federator.planning.changes import ABSENT, ANY, Action, Change, Refusal
from federator.planning.guards import GuardFacts, measure_guards
from federator.planning.plan import Plan, sort_changes
from federator.planning.reasons import Reason
from federator.planning.rule import MirrorRule

#: prefix of the name that such plans and their journal lines have in place of a mirror's name: mirror names have no colon
PLAN_NAME_PREFIX = "declare:"
_VALID = "valid"
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class DeclarationCandidate:
    """A location to declare as ``path``, with the results of inspecting it and of observing the target.

    ``state`` and ``message`` are the result of the inspection, ``schema`` the columns to declare. ``existing`` is the target's table
    of that name. ``foreign`` describes an object of that name that is not a Lance table. ``other_paths`` are the target's other
    names for the location. ``missing_namespaces`` are the absent namespaces above it, outermost first.
    """

    path: Path
    location: str
    canonical: str
    state: str
    message: str | None = None
    existing: TableRecord | None = None
    foreign: str | None = None
    other_paths: Sequence[str] = ()
    missing_namespaces: Sequence[Path] = ()
    schema: str | None = None


def build_user_rule(target: str) -> MirrorRule:
    """Build the rule that an executor needs in place of a mirror's. It requires no approval and deletes nothing."""
    return MirrorRule(name=f"{PLAN_NAME_PREFIX}{target}", origin=target, target=target, delete="never")


def user_plan_target(name: str) -> str | None:
    """Return the target of a user's plan by the plan's name. None for a plan of a mirror."""
    return name.removeprefix(PLAN_NAME_PREFIX) if name.startswith(PLAN_NAME_PREFIX) else None


def derive_path(template: str | None, canonical_location: str, levels: int) -> Path:
    """Return the path under which a location is declared. ``template`` has its levels, joined by ``$``.

    The default has the names of the location's directories: one for each of the target's ``levels``, and the table's.
    ``{table}`` is the directory's name without ``.lance``, ``{1}`` the name above it, ``{2}`` the one above that. Raise ConfigError
    for a placeholder that has no directory.
    """
    names = [
        location.rstrip("/").rpartition("/")[2] for location in (canonical_location, *parent_locations(canonical_location))
    ]
    names_by_placeholder = {str(number): name for number, name in enumerate(names)}
    names_by_placeholder["table"] = names_by_placeholder.pop("0").removesuffix(".lance")
    template = template or "$".join([*(f"{{{level}}}" for level in range(levels, 0, -1)), "{table}"])

    def fill_placeholder(match: re.Match[str]) -> str:
        name = names_by_placeholder.get(match[1])
        if not name:
            raise ConfigError(
                f"{match[0]} names no directory of {canonical_location}",
                hint="use names, {table}, {1} for the directory above the table, {2} ... in --as",
            )
        return name

    return tuple(_PLACEHOLDER.sub(fill_placeholder, part) for part in template.split("$"))


def plan_user_declarations(
    target: str, capabilities: Capabilities, candidates: Sequence[DeclarationCandidate], *, revision: int
) -> Plan:
    """Build the plan that declares the allowed candidates. The other candidates are its refusals."""
    rule = build_user_rule(target)
    changes: dict[str, Change] = {}
    refusals: list[Refusal] = []
    for candidate in candidates:
        refusal = _refusal_reason(capabilities, candidate)
        if refusal is None and path_key(candidate.path) in changes:
            refusal = Reason.NAME_CLASH, "another table of this plan gets the same name"
        if refusal is not None:
            refusals.append(Refusal(refusal[0], target, path_key(candidate.path), "", f"{candidate.location}: {refusal[1]}"))
            continue
        for namespace in candidate.missing_namespaces:
            changes.setdefault(path_key(namespace), _create_namespace_change(target, namespace, candidate))
        changes[path_key(candidate.path)] = _declare_table_change(target, candidate)
    ordered = sort_changes(changes.values())
    # Only the guard ``max_changes`` can hold the plan: it removes nothing, so the facts about removals do not matter.
    facts = GuardFacts(
        live_tables=0,
        live_by_namespace={},
        existing_by_origin_namespace={},
        deleted_in_window=0,
        deleted_by_namespace={},
        selected_count=len(changes),
        origin_filters_listings=False,
    )
    results = measure_guards(rule, ordered, facts)
    holds = tuple(hold for _, hold in results if hold is not None)
    guards = tuple(measurement for measurement, _ in results)
    return Plan(
        rule.name, rule.digest, revision, revision, ordered, tuple(refusals), holds, selected=len(candidates), guards=guards
    )


def _refusal_reason(capabilities: Capabilities, candidate: DeclarationCandidate) -> tuple[Reason, str] | None:
    if candidate.existing is not None and candidate.existing.canonical == candidate.canonical:
        return Reason.LOCATION_DECLARED, "it is already declared at the target"
    if candidate.other_paths:
        return Reason.LOCATION_DECLARED, f"it is already declared at the target as {', '.join(sorted(candidate.other_paths))}"
    above = len(candidate.path) - 1
    if not capabilities.min_depth <= above <= capabilities.max_depth:
        return (
            Reason.DEPTH,
            f"{path_key(candidate.path)} has {above} levels above the table, the target requires {capabilities.min_depth}",
        )
    for level, name in enumerate(candidate.path, 1):
        if not capabilities.name_rules(namespace=level <= above).allows(name):
            return Reason.NAME_NOT_ALLOWED, f"the target does not allow the name {name[:80]!r}"
    if obstacle := capabilities.locations.find_obstacle(candidate.path, candidate.location):
        return Reason.NO_LOCATION, obstacle
    if candidate.state != _VALID:
        suffix = f" ({candidate.message})" if candidate.message else ""
        return Reason.NOT_VALID, f"no table could be opened at the location: {candidate.state.replace('_', ' ')}{suffix}"
    if candidate.existing is not None or candidate.foreign is not None:
        detail = candidate.foreign or f"it points to {candidate.existing.location if candidate.existing else ''}"
        return Reason.NAME_TAKEN, f"the name is taken: {detail}"
    for namespace in candidate.missing_namespaces:
        if len(namespace) not in capabilities.creates_namespaces_at:
            return Reason.NAMESPACE_MISSING, f"{path_key(namespace)} does not exist and cannot be created at the target"
    return None


def _create_namespace_change(target: str, namespace: Path, candidate: DeclarationCandidate) -> Change:
    return Change(
        Action.CREATE_NAMESPACE,
        target,
        path_key(namespace),
        origin_source="",
        origin_path="",
        reason=f"for {path_key(candidate.path)}",
        namespace=NamespaceRecord(target, namespace),
    )


def _declare_table_change(target: str, candidate: DeclarationCandidate) -> Change:
    after = TableRecord(target, candidate.path, candidate.location, schema=candidate.schema)
    return Change(
        Action.DECLARE_TABLE,
        target,
        path_key(candidate.path),
        origin_source="",
        origin_path="",
        reason="declared by a user",
        after=after,
        precondition={"target": ABSENT, "origin": ANY},
    )
