"""Configuration changes as audit events: the changed keys with old and new values. Secrets are masked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from federator.connector.options import MASKED, is_secret_key, is_secret_reference, plain_storage_keys, secret_keys
from federator.connector.storage_options import is_plain_option
from federator.model import canonical_json, digest_of
from federator.model.audit_kinds import AuditKind
from federator.registry import get_connector
from federator.runtime.redaction import mask_url_secrets
from federator.settings import Settings, SourceSettings
from federator.store import Index, audit_log
from federator.store.runs import RunHandle


def record_config_change(index: Index, settings: Settings, run: RunHandle) -> None:
    """Record the difference from the last recorded configuration. Record nothing if there is none."""
    current = _masked_settings(settings)
    with index.write() as connection:
        recorded = audit_log.find_recorded_configuration(connection)
        previous: dict[str, str] = json.loads(recorded) if recorded is not None else {}
        if previous == current:
            return
        changed = {
            key: [previous.get(key), current.get(key)]
            for key in sorted({*previous, *current})
            if previous.get(key) != current.get(key)
        }
        detail = {
            "before": digest_of(previous) if recorded is not None else None,
            "after": digest_of(current),
            "changed": changed,
        }
        audit_log.append_event(
            connection, AuditKind.CONFIG_CHANGED, actor=run.actor, run_id=run.id, subject="configuration", detail=detail
        )
        audit_log.record_configuration(connection, canonical_json(current))


def _masked_settings(settings: Settings) -> dict[str, str]:
    """Return every key that the file sets, with its value. For a secret, only its reference is shown.

    The tables ``where``, ``replace`` and ``location`` of a mirror are complete, with their defaults.
    """
    masked = {}
    for path, value in _flatten(settings.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"path"})):
        if path[0] == "sources" and path[2] == "properties":
            is_secret = _is_secret_property(settings.sources[path[1]], path[-1])
        else:
            is_secret = is_secret_key(path[-1])
        masked[".".join(path)] = MASKED if is_secret and not is_secret_reference(value) else mask_url_secrets(value)
    return masked


def _is_secret_property(source: SourceSettings, key: str) -> bool:
    name = key.removeprefix(f"{source.impl}.")
    if name.startswith("storage."):
        return not is_plain_option(name.removeprefix("storage."), plain_storage_keys(source.impl, source.properties))
    return is_secret_key(key) or name in secret_keys(get_connector(source.impl).settings_type)


def _flatten(value: Any, path: Sequence[str] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten(inner, (*path, str(key)))
    else:
        yield tuple(path), value if isinstance(value, str) else canonical_json(value)
