"""The mapping of origin tables: their path at the target, and the record to declare there.

The target's rules (lower case, name patterns, depth) are applied here, before records are compared. Otherwise a table would differ
from its own declaration on every run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from federator.connector import Capabilities, is_endpoint_key
from federator.model import Path, TableRecord, canonical_location, is_location, path_key, stable_properties
from federator.planning.ownership import (
    OwnershipMarker,
    append_comment_marker,
    find_origin_marker,
    strip_comment_marker,
    strip_marker_properties,
)
from federator.planning.reasons import Reason
from federator.planning.rule import MirrorRule
from federator.planning.selection import matches_pattern
from federator.runtime.redaction import is_secret_key

#: ``{level}`` in a template, or one name of a repeated level: ``{level[0]}``, ``{level[-1]}``
PLACEHOLDER = re.compile(r"\{(\w+)(?:\[(-?[0-9]+)\])?\}")
# Joins the names of a repeated level into one name. Every catalog accepts this character.
_LEVEL_SEPARATOR = "_"

Names = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class MirrorContext:
    """The input of mapping and decisions besides the records. Picklable.

    ``target_prefix`` are the levels that the target puts before a shorter path (Glue's account). ``repeating_level`` is the
    origin's level that repeats in deeper trees (default: the last). ``competing_mirrors`` are this instance's other mirrors into
    the target, with their origins.
    """

    rule: MirrorRule
    instance: str
    origin_levels: tuple[str, ...]
    target: Capabilities
    target_prefix: Path = ()
    repeating_level: str | None = None
    competing_mirrors: Mapping[str, str] = field(default_factory=dict)
    #: origin and target are of one server, in which each location belongs to one table
    shares_locations: bool = False
    #: a user requested this plan and confirms that dropping a namespace may cascade
    drops_confirmed: bool = False

    @classmethod
    def from_rule(
        cls, rule: MirrorRule, instance: str, origin: Capabilities, target: Capabilities, target_prefix: Path,
        rules: Iterable[MirrorRule],
    ) -> Self:  # fmt: skip
        """Build the context from the capabilities of both catalogs. ``rules`` are all mirrors of the instance."""
        competing_mirrors = {
            other.name: other.origin for other in rules if other.target == rule.target and other.name != rule.name
        }
        server = target.locations.exclusive_in
        shares_locations = server is not None and server == origin.locations.exclusive_in
        return cls(rule, instance, origin.levels, target, target_prefix, origin.nested, competing_mirrors, shares_locations)


@dataclass(frozen=True, slots=True)
class DesiredTable:
    """A selected origin table with its desired record at the target, or the reason why it is impossible there."""

    origin: TableRecord
    record: TableRecord | None = None
    refusal: Reason | None = None
    detail: str = ""


def map_table(context: MirrorContext, origin: TableRecord) -> DesiredTable:
    """Return the desired table of a selected origin table."""
    rule, target = context.rule, context.target
    marker = find_origin_marker(origin)
    if marker is not None and (not rule.transitive or rule.target in marker.visited_sources):
        remedy = "" if rule.target in marker.visited_sources else "; transitive = true forwards copies"
        return DesiredTable(
            origin,
            refusal=Reason.LOOP,
            detail=f"the origin was declared by {marker.instance}/{marker.mirror} from {marker.origin}{remedy}",
        )
    path = map_path(context, origin.path)
    refusal, detail = _check_names(context, path)
    location = relocate(rule, str(origin.location))
    if refusal is None:
        refusal, detail = _check_location(context, origin, path, location)
    properties = select_properties(rule, origin.properties) if target.keeps_properties else {}
    if refusal is None and (problem := _find_rejected_property(target, properties)):
        refusal, detail = Reason.PROPERTY_REFUSED, problem
    if refusal is not None:
        return DesiredTable(origin, refusal=refusal, detail=detail)
    first_origin = marker.origin if marker is not None else f"{rule.origin}${origin.key}"
    own_marker = OwnershipMarker(
        context.instance, rule.name, first_origin, via=(*marker.via, rule.origin) if marker is not None else ()
    )
    doc = strip_comment_marker(origin.doc) if target.keeps_comment else None
    if target.keeps_properties:
        properties |= own_marker.to_properties(path)
    elif target.keeps_comment:
        doc = append_comment_marker(doc, own_marker, path)
    schema = origin.schema if target.keeps_columns else None
    return DesiredTable(origin, TableRecord(rule.target, path, location, properties, doc=doc, schema=schema))


def map_path(context: MirrorContext, origin: Path) -> Path:
    """Return the path at the target.

    Replacements are applied first, then the templates over the origin's level names, then prefix and suffix. Last are the target's
    case rule and the target prefix.
    """
    rule = context.rule
    names = {
        level: tuple(_apply_replacements(rule, level, name) for name in values)
        for level, values in names_by_level(context.origin_levels, context.repeating_level, origin).items()
    }
    table = _apply_replacements(rule, "table", origin[-1])
    if rule.namespace is not None:
        levels = _expand_template(rule.namespace, names)
    else:
        levels = tuple(name for values in names.values() for name in values) if names else origin[:-1]
    table_name = "".join(_expand_template(rule.table, {**names, "table": (table,)}))
    # An empty name stays empty and is refused: a prefix must not turn it into a table name.
    path = tuple(
        context.target.names.canonicalize(name) for name in (*levels, table_name and f"{rule.prefix}{table_name}{rule.suffix}")
    )
    return (*context.target_prefix, *path) if context.target_prefix and len(path) == context.target.min_depth + 1 else path


def names_by_level(levels: tuple[str, ...], nested: str | None, path: Path) -> dict[str, tuple[str, ...]]:
    """Return the names above a table by level. A shorter path lacks the first levels.

    In a longer path, the level ``nested`` (default: the last) has the extra names.
    """
    parents = path[:-1]
    missing = max(len(levels) - len(parents), 0)
    surplus = max(len(parents) - len(levels), 0)
    names: dict[str, tuple[str, ...]] = {}
    start = 0
    for level in levels[missing:]:
        width = 1 + (surplus if level == (nested or levels[-1]) else 0)
        names[level] = parents[start : start + width]
        start += width
    return names


def relocate(rule: MirrorRule, location: str) -> str:
    """Return a location at the target: the first prefix that matches up to a slash is replaced."""
    for move in rule.location:
        rest = _strip_location_prefix(location, move.origin)
        if rest is not None:
            return move.target + rest
    return location


def relocate_to_origin(rule: MirrorRule, location: str) -> str:
    """Invert ``relocate``, for locations that it returned."""
    for move in rule.location:
        rest = _strip_location_prefix(location, move.target)
        if rest is not None:
            return move.origin + rest
    return location


def _strip_location_prefix(location: str, prefix: str) -> str | None:
    """Return what follows a prefix of whole path segments. None if the location has another prefix."""
    rest = location.removeprefix(prefix)
    fits = location.startswith(prefix) and (not rest or rest.startswith("/") or prefix.endswith("/"))
    return rest if fits else None


def select_properties(rule: MirrorRule, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the origin's properties to declare: allowed, not denied, and neither markers, statistics, secrets nor endpoints."""
    # A secret or an endpoint in a table's properties would otherwise reach users of the target who have no access to it.
    return {
        key: value
        for key, value in strip_marker_properties(stable_properties(properties)).items()
        if not is_secret_key(key)
        and not is_endpoint_key(key)
        and any(matches_pattern(pattern, key) for pattern in rule.allow_properties)
        and not any(matches_pattern(pattern, key) for pattern in rule.deny_properties)
    }


def _apply_replacements(rule: MirrorRule, level: str, name: str) -> str:
    for change in rule.replace:
        if change.level == level:
            name = re.sub(change.pattern, change.text, name)
    return name


def _expand_template(template: str, names: Names) -> tuple[str, ...]:
    # Split before placeholders are expanded, so that a "$" in a name stays part of that name.
    expanded: list[str] = []
    for part in template.split("$"):
        placeholder = PLACEHOLDER.fullmatch(part)
        if placeholder is not None and placeholder[2] is None:
            expanded += names.get(placeholder[1], ())
        else:
            expanded.append(PLACEHOLDER.sub(lambda match: _expand_placeholder(match, names), part))
    return tuple(part for part in expanded if part)


def _expand_placeholder(match: re.Match[str], names: Names) -> str:
    values = names.get(match[1], ())
    if match[2] is None:
        return _LEVEL_SEPARATOR.join(values)
    number = int(match[2])
    return values[number] if -len(values) <= number < len(values) else ""


def _find_rejected_property(target: Capabilities, properties: Mapping[str, str]) -> str:
    key_limit, value_limit = target.property_key_length, target.property_value_length
    for key, value in properties.items():
        if key_limit is not None and len(key) > key_limit:
            return f"the target allows property names of up to {key_limit} characters, not {key[:80]!r}; deny_properties excludes it"
        if value_limit is not None and len(value) > value_limit:
            return (
                f"the target allows values of up to {value_limit} characters, not that of {key!r}; deny_properties excludes it"
            )
    return ""


def _check_location(context: MirrorContext, origin: TableRecord, path: Path, location: str) -> tuple[Reason | None, str]:
    if not is_location(origin.location):
        return Reason.NO_LOCATION, f"the origin's location is {origin.location!r}"
    if obstacle := context.target.locations.find_obstacle(path, location):
        return Reason.NO_LOCATION, obstacle
    if context.shares_locations and canonical_location(location) == origin.canonical:
        return (
            Reason.LOCATION_DECLARED,
            f"the origin has {location}, and the server of origin and target gives each location to one table only",
        )
    return None, ""


def _check_names(context: MirrorContext, path: Path) -> tuple[Reason | None, str]:
    target = context.target
    if not target.min_depth <= len(path) - 1 <= target.max_depth:
        allowed = f"{target.min_depth} to {target.max_depth}" if target.min_depth != target.max_depth else str(target.min_depth)
        return Reason.DEPTH, f"{path_key(path)} has {len(path) - 1} levels above the table, the target requires {allowed}"
    prefix_length = len(context.target_prefix) if path[: len(context.target_prefix)] == context.target_prefix else 0
    for level, name in enumerate(path[prefix_length:], prefix_length + 1):
        if not target.name_rules(namespace=level < len(path)).allows(name):
            return Reason.NAME_NOT_ALLOWED, f"the target does not allow the name {name[:80]!r}"
    return None, ""
