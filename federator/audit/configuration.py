"""Changes of the configuration, as events: which keys were given what, secrets masked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from federator.connector.options import MASKED, is_reference, is_secret_key, secret_keys
from federator.index import Index, audit_log
from federator.index.runs import RunHandle
from federator.model import canonical_json, digest_of
from federator.registry import connector
from federator.settings import Settings

CONFIG_CHANGED = "config_changed"


def note_configuration(index: Index, settings: Settings, run: RunHandle) -> None:
    """Records what is configured otherwise than at the last run that was recorded; nothing where nothing is."""
    now = _shown(settings)
    with index.write() as connection:
        known = audit_log.configuration(connection)
        before: dict[str, str] = json.loads(known) if known is not None else {}
        if before == now:
            return
        changed = {key: [before.get(key), now.get(key)] for key in sorted({*before, *now}) if before.get(key) != now.get(key)}
        detail = {"before": digest_of(before) if known is not None else None, "after": digest_of(now), "changed": changed}
        audit_log.append(connection, CONFIG_CHANGED, actor=run.actor, run_id=run.id, subject="configuration", detail=detail)
        audit_log.set_configuration(connection, canonical_json(now))


def _shown(settings: Settings) -> dict[str, str]:
    """Every key that the file sets, with its value; of a secret only the reference to it."""
    hidden = {name: secret_keys(connector(source.impl).settings_type) for name, source in settings.sources.items()}
    shown = {}
    for path, value in _leaves(settings.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"path"})):
        secret = is_secret_key(path[-1]) or path == ("audit", "key")
        if path[0] == "sources" and path[2] == "properties":
            impl, bare = settings.sources[path[1]].impl, path[-1]
            secret = secret or bare.removeprefix(f"{impl}.") in hidden[path[1]]
        shown[".".join(path)] = MASKED if secret and not is_reference(value) else value
    return shown


def _leaves(value: Any, path: Sequence[str] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    else:
        yield tuple(path), value if isinstance(value, str) else canonical_json(value)
