"""What only the whole configuration shows: references between its sections, secrets in clear, templates."""

from __future__ import annotations

import re

from federator.connector import ConfigError
from federator.connector.options import is_reference, is_secret_key, resolve
from federator.model import canonical_location
from federator.planning.mapping import PLACEHOLDER
from federator.registry import capabilities, connector
from federator.settings.sections import MirrorSettings, Settings
from federator.settings.telling import check_telling


def check(settings: Settings) -> None:
    file = settings.path
    for source in settings.sources.values():
        where = f"{file}: [sources.{source.name}] "
        try:
            found = connector(source.impl)
        except ConfigError as error:
            raise ConfigError(f"{where}impl: {error.message}", hint=error.hint) from None
        found.settings_type.check_references(source.impl, source.properties, where=where)
        found.configure(source.properties, where=where)
    _check_roots(settings)
    _check_tree(settings)
    resolve(settings.index.url, where=f"{file}: [index] url")
    password = re.match(r"[^:/]+://[^/@]*?:([^@]*)@", settings.index.url)
    kept: dict[str, str | None] = {
        f"[audit.storage] {key}": text for key, text in settings.audit.storage.items() if is_secret_key(key)
    }
    kept |= {"[serve] token": settings.serve.token, "[audit] key": settings.audit.key, "[audit] token": settings.audit.token}
    for key, text in (("[index] url", password and password[1]), *kept.items()):
        if text and not is_reference(text):
            raise ConfigError(f"{file}: {key}: a secret must not stand in the file", hint="write ${VARIABLE}")
    check_telling(settings.telemetry, settings.lineage, settings.notify, file)
    for name, mirror in settings.mirrors.items():
        where = f"{file}: [mirrors.{name}]"
        for key, value in (("from", mirror.origin), ("to", mirror.target)):
            if value not in settings.sources:
                raise ConfigError(
                    f"{where} {key}: no source is called {value!r}", hint=f"sources: {', '.join(settings.sources)}"
                )
        if mirror.origin == mirror.target:
            raise ConfigError(f"{where} to: a mirror needs two different sources")
        _check_template(where, settings, mirror)
        _check_replace(where, settings, mirror)
        _check_priority(where, settings, mirror)
    if settings.mirrors and settings.instance.id is None:
        raise ConfigError(
            f"{file}: [instance] id: required with any mirror", hint='it marks what is ours in the targets, e.g. id = "prod-eu"'
        )


def _check_tree(settings: Settings) -> None:
    for key, names in (("priority", settings.tree.priority), ("skip", tuple(settings.tree.skip))):
        for name in names:
            if name not in settings.sources:
                raise ConfigError(
                    f"{settings.path}: [tree] {key}: no source is called {name!r}",
                    hint=f"sources: {', '.join(settings.sources)}",
                )
    for name, levels in settings.tree.skip.items():
        deepest = capabilities(settings.sources[name].spec).max_depth
        if not 0 <= levels <= deepest:
            raise ConfigError(f"{settings.path}: [tree] skip: {levels} of {name!r} is not allowed", hint=f"0 to {deepest}")


def _check_roots(settings: Settings) -> None:
    for name, root in settings.roots.items():
        where = f"{settings.path}: [roots.{name}]"
        if root.source is not None and root.source not in settings.sources:
            raise ConfigError(
                f"{where} source: no source is called {root.source!r}", hint=f"sources: {', '.join(settings.sources)}"
            )
        if root.source is not None and root.storage:
            raise ConfigError(f"{where} storage: the storage options are those of the source {root.source!r}", hint="give one")
        for key, text in root.storage.items():
            if is_secret_key(key) and not is_reference(text):
                raise ConfigError(f"{where} storage.{key}: a secret must not stand in the file", hint="write ${VARIABLE}")
            resolve(text, where=f"{where} storage.{key}")
        outside = [each for each in root.excluded if not each.startswith(canonical_location(root.location).rstrip("/") + "/")]
        if outside:
            raise ConfigError(f"{where} exclude: {outside[0]} is not below {root.location}")


def _check_template(where: str, settings: Settings, mirror: MirrorSettings) -> None:
    levels = _levels(settings, mirror)
    for key, template, names in (("namespace", mirror.namespace or "", levels), ("table", mirror.table, (*levels, "table"))):
        for used in re.findall(r"\{([^{}]*)\}", template):
            known = PLACEHOLDER.fullmatch(f"{{{used}}}")
            if known is None or known[1] not in names:
                allowed = f"allowed: {', '.join(names)}" if names else f"{mirror.origin!r} has no levels that have names"
                raise ConfigError(f"{where} {key}: {{{used}}} is no level of {mirror.origin!r}", hint=allowed)
        if re.search(r"[{}]", re.sub(r"\{[^{}]*\}", "", template)):
            raise ConfigError(f"{where} {key}: {template!r} has a brace without its other half", hint="{table} fills in a name")


def _check_replace(where: str, settings: Settings, mirror: MirrorSettings) -> None:
    names = (*_levels(settings, mirror), "table")
    for change in mirror.replace:
        if change.level not in names:
            raise ConfigError(
                f"{where} replace: {change.level!r} is no level of {mirror.origin!r}", hint=f"allowed: {', '.join(names)}"
            )
        try:
            re.sub(change.pattern, change.text, "")
        except (re.error, IndexError) as error:
            raise ConfigError(f"{where} replace: {change.text!r} does not fit {change.pattern!r}: {error}") from None
    for move in mirror.location:
        if move.origin.endswith("/") != move.target.endswith("/"):
            raise ConfigError(f"{where} location: {move.origin!r} and {move.target!r} must both end in / or neither")
    targets = [move.target for move in mirror.location]
    if len(set(targets)) < len(targets):
        raise ConfigError(f"{where} location: two entries end at one place", hint="each place needs a way back")


def _check_priority(where: str, settings: Settings, mirror: MirrorSettings) -> None:
    """One order for everything that meets at a target: with two of them, mirrors would take each other's tables for ever."""
    order = mirror.source_priority
    if (mirror.on_conflict == "source_priority") != bool(order):
        raise ConfigError(
            f'{where} source_priority: goes with on_conflict = "source_priority"', hint='e.g. ["lake_hive", "glue"], best first'
        )
    unknown = [name for name in order if name not in settings.sources]
    if unknown:
        raise ConfigError(f"{where} source_priority: no source is called {unknown[0]!r}")
    others = {m.source_priority for m in settings.mirrors.values() if m.target == mirror.target and m.source_priority}
    if len(others) > 1:
        raise ConfigError(f"{where} source_priority: every mirror into {mirror.target!r} needs the same order")


def _levels(settings: Settings, mirror: MirrorSettings) -> tuple[str, ...]:
    return capabilities(settings.sources[mirror.origin].spec).levels
