"""Configuration changes as audit events: the changed keys with old and new values. Secrets are masked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from federator.connector.options import MASKED, is_secret_key, is_secret_reference, plain_storage_keys, secret_keys
from federator.connector.storage_options import is_plain_option
from federator.model import canonical_json, digest_of
from federator.registry import get_connector
from federator.runtime.redaction import mask_url_secrets
from federator.settings import Settings
from federator.store import Index, audit_log
from federator.store.runs import RunHandle

CONFIG_CHANGED = "config_changed"


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
            connection, CONFIG_CHANGED, actor=run.actor, run_id=run.id, subject="configuration", detail=detail
        )
        audit_log.record_configuration(connection, canonical_json(current))


def _masked_settings(settings: Settings) -> dict[str, str]:
    """Return every key that the file sets, with its value. For a secret, only its reference is shown.

    The tables ``where``, ``replace`` and ``location`` of a mirror are complete, with their defaults.
    """
    secret_names = {name: secret_keys(get_connector(source.impl).settings_type) for name, source in settings.sources.items()}
    plain = {name: plain_storage_keys(source.impl, source.properties) for name, source in settings.sources.items()}
    masked = {}
    for path, value in _flatten(settings.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"path"})):
        secret = is_secret_key(path[-1])
        if path[0] == "sources" and path[2] == "properties":
            impl, source = settings.sources[path[1]].impl, path[1]
            name = path[-1].removeprefix(f"{impl}.")
            option = name.removeprefix("storage.")
            secret = not is_plain_option(option, plain[source]) if option != name else secret or name in secret_names[source]
        masked[".".join(path)] = MASKED if secret and not is_secret_reference(value) else mask_url_secrets(value)
    return masked


def _flatten(value: Any, path: Sequence[str] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten(inner, (*path, str(key)))
    else:
        yield tuple(path), value if isinstance(value, str) else canonical_json(value)
