"""Registration of the configured secrets for redaction.

Settings keep references. The values are registered when a configuration is loaded, because a process that only reads the index never
resolves them, and a catalog may repeat them in properties and comments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from federator.connector.options import is_secret_reference, register_reference
from federator.connector.storage_options import is_plain_option
from federator.registry import get_connector
from federator.settings.section import Section
from federator.settings.sections import RootSettings, Settings, SourceSettings

# References that are no secrets: names, and the URL of the index, whose password ``open_index`` registers.
_PLAIN_KEYS = ("fingerprint", "role_arn", "host", "username", "url", "endpoint", "region")


def register_secrets(settings: Settings) -> None:
    """Register the values of all secret references. A reference that cannot be resolved is left out: its use reports it."""
    for source in settings.sources.values():
        get_connector(source.impl).settings_type.register_secrets(source.impl, source.properties)
    for text in _secret_references(settings):
        register_reference(text)


def _secret_references(section: Section) -> Iterator[str]:
    for name, value in section:
        if isinstance(value, str) and is_secret_reference(value) and name not in _PLAIN_KEYS:
            yield value
        elif isinstance(section, RootSettings) and name == "storage":
            yield from (text for key, text in value.items() if is_secret_reference(text) and not is_plain_option(key))
        elif isinstance(section, SourceSettings) and name == "properties":
            continue
        else:
            yield from _references_inside(value)


def _references_inside(value: object) -> Iterator[str]:
    if isinstance(value, Section):
        yield from _secret_references(value)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _references_inside(inner)
