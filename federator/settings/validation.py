"""Checks across configuration sections: references, secrets in clear and templates."""

from __future__ import annotations

import re

from federator.connector import ConfigError
from federator.connector.options import is_secret_key, is_secret_reference, resolve_reference
from federator.model import canonical_location
from federator.planning.mapping import PLACEHOLDER
from federator.registry import get_connector, source_capabilities
from federator.settings.observability import validate_observability
from federator.settings.sections import MirrorSettings, Settings, SourceSettings


def validate_settings(settings: Settings) -> None:
    """Raise ConfigError for the first contradiction between sections, secret in clear, or unknown name."""
    for source in settings.sources.values():
        _check_source(settings, source)
    _check_roots(settings)
    _check_tree(settings)
    _check_secrets(settings)
    _check_cluster(settings)
    validate_observability(settings.telemetry, settings.lineage, settings.notify, settings.path)
    for name, mirror in settings.mirrors.items():
        _check_mirror(f"{settings.path}: [mirrors.{name}]", settings, mirror)
    if settings.mirrors and settings.instance.id is None:
        raise ConfigError(
            f"{settings.path}: [instance] id: required with any mirror",
            hint='set a name that marks owned objects in the targets, e.g. id = "prod-eu"',
        )


def _check_source(settings: Settings, source: SourceSettings) -> None:
    where = f"{settings.path}: [sources.{source.name}] "
    try:
        connector = get_connector(source.impl)
    except ConfigError as error:
        raise ConfigError(f"{where}impl: {error.message}", hint=error.hint) from None
    connector.settings_type.check_references(source.impl, source.properties, where=where)
    connector.parse_settings(source.properties, where=where)
    if ("sts" in source.vend_methods) != (source.sts is not None):
        raise ConfigError(
            f'{where}vend = "sts" and [sources.{source.name}.sts] need each other', hint='set vend = "sts", and sts.role_arn'
        )
    if "catalog" in source.vend_methods and not connector.capabilities.vends_credentials:
        raise ConfigError(
            f'{where}vend = "catalog": the connector {source.impl} gets no credentials from its catalog',
            hint='use "sts", "gcs" or "azure"',
        )


def _check_secrets(settings: Settings) -> None:
    """Check the sections index and audit. Those of sources and roots are checked with their section."""
    settings.resolve_index_url()
    password = re.match(r"[^:/]+://[^/@]*?:([^@]*)@", settings.index.url)
    secrets = {"[index] url": password[1]} if password else {}
    secrets |= {f"[audit.storage] {key}": text for key, text in settings.audit.storage.items() if is_secret_key(key)}
    for key, text in secrets.items():
        if text and not is_secret_reference(text):
            raise ConfigError(f"{settings.path}: {key}: a secret must not stand in the file", hint="write ${VARIABLE}")


def _check_mirror(where: str, settings: Settings, mirror: MirrorSettings) -> None:
    for key, value in (("from", mirror.origin), ("to", mirror.target)):
        if value not in settings.sources:
            raise ConfigError(f"{where} {key}: no source is called {value!r}", hint=f"sources: {', '.join(settings.sources)}")
    if mirror.origin == mirror.target:
        raise ConfigError(f"{where} to: a mirror needs two different sources")
    _check_template(where, settings, mirror)
    _check_replace(where, settings, mirror)
    _check_priority(where, settings, mirror)


def _check_cluster(settings: Settings) -> None:
    """Executors on other machines reach neither a directory nor a SQLite file of this one."""
    master = settings.spark.master
    if settings.spark.is_local:
        return
    if settings.resolve_index_url().startswith("sqlite"):
        raise ConfigError(
            f"{settings.path}: [index] url: executors of {master} cannot read a SQLite file of this machine",
            hint='use PostgreSQL: url = "postgresql+psycopg://..."',
        )
    if not settings.spark.staging:
        raise ConfigError(
            f"{settings.path}: [spark] staging: {master} needs a directory that every executor can write",
            hint='set staging = "s3a://bucket/path", "hdfs://...", or the path of a shared file system',
        )
    if settings.spark.is_connect:
        _check_connect(settings)


def _check_connect(settings: Settings) -> None:
    """The executors of a Spark Connect server were configured when it was started. A client can change SQL settings only."""
    file = settings.path
    if settings.spark.archive:
        raise ConfigError(
            f"{file}: [spark] archive: a client of Spark Connect cannot ship packages to executors",
            hint="start the server with the archive: docs/how-to/cluster.md",
        )
    for key in settings.spark.conf:
        if not key.startswith("spark.sql."):
            raise ConfigError(
                f"{file}: [spark.conf] {key}: a client of Spark Connect can set spark.sql.* only",
                hint="set it where the server is started",
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
        max_depth = source_capabilities(settings.sources[name].spec).max_depth
        if not 0 <= levels <= max_depth:
            raise ConfigError(f"{settings.path}: [tree] skip: {levels} of {name!r} is not allowed", hint=f"0 to {max_depth}")


def _check_roots(settings: Settings) -> None:
    for name, root in settings.roots.items():
        where = f"{settings.path}: [roots.{name}]"
        if root.source is not None and root.source not in settings.sources:
            raise ConfigError(
                f"{where} source: no source is called {root.source!r}", hint=f"sources: {', '.join(settings.sources)}"
            )
        if root.source is not None and root.storage:
            raise ConfigError(f"{where} storage: cannot be combined with source = {root.source!r}", hint="set only one of them")
        for key, text in root.storage.items():
            if is_secret_key(key) and not is_secret_reference(text):
                raise ConfigError(f"{where} storage.{key}: a secret must not stand in the file", hint="write ${VARIABLE}")
            resolve_reference(text, where=f"{where} storage.{key}")
        outside = [
            location
            for location in root.excluded_locations
            if not location.startswith(canonical_location(root.location).rstrip("/") + "/")
        ]
        if outside:
            raise ConfigError(f"{where} exclude: {outside[0]} is not below {root.location}")


def _check_template(where: str, settings: Settings, mirror: MirrorSettings) -> None:
    levels = _origin_levels(settings, mirror)
    for key, template, names in (("namespace", mirror.namespace or "", levels), ("table", mirror.table, (*levels, "table"))):
        for placeholder in re.findall(r"\{([^{}]*)\}", template):
            match = PLACEHOLDER.fullmatch(f"{{{placeholder}}}")
            if match is None or match[1] not in names:
                allowed = f"allowed: {', '.join(names)}" if names else f"{mirror.origin!r} has no named levels"
                raise ConfigError(f"{where} {key}: {{{placeholder}}} is not a level of {mirror.origin!r}", hint=allowed)
        if re.search(r"[{}]", re.sub(r"\{[^{}]*\}", "", template)):
            raise ConfigError(f"{where} {key}: {template!r} has an unmatched brace", hint="use placeholders such as {table}")


def _check_replace(where: str, settings: Settings, mirror: MirrorSettings) -> None:
    names = (*_origin_levels(settings, mirror), "table")
    for change in mirror.replace:
        if change.level not in names:
            raise ConfigError(
                f"{where} replace: {change.level!r} is not a level of {mirror.origin!r}", hint=f"allowed: {', '.join(names)}"
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
        raise ConfigError(f"{where} location: two entries have the same target", hint="use a different target for each entry")


def _check_priority(where: str, settings: Settings, mirror: MirrorSettings) -> None:
    """Require one order for all mirrors into a target. With two orders, mirrors would replace each other's tables for ever."""
    order = mirror.source_priority
    if (mirror.on_conflict == "source_priority") != bool(order):
        raise ConfigError(
            f'{where} source_priority and on_conflict = "source_priority" need each other',
            hint='set e.g. source_priority = ["lake_hive", "glue"], the best first',
        )
    unknown = [name for name in order if name not in settings.sources]
    if unknown:
        raise ConfigError(f"{where} source_priority: no source is called {unknown[0]!r}")
    orders = {m.source_priority for m in settings.mirrors.values() if m.target == mirror.target and m.source_priority}
    if len(orders) > 1:
        raise ConfigError(f"{where} source_priority: every mirror into {mirror.target!r} needs the same order")


def _origin_levels(settings: Settings, mirror: MirrorSettings) -> tuple[str, ...]:
    return source_capabilities(settings.sources[mirror.origin].spec).levels
