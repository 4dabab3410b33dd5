"""The typed configuration of one TOML file.

Nothing is read at import, and settings keep secrets as references. Loading registers the values for redaction. Relative paths (the
SQLite file, the root of a directory source) start at the file's directory, so a command has the same result in every working directory.
"""

from federator.planning.key_types import parse_duration
from federator.settings.field_types import AFTER_CRAWL
from federator.settings.loader import load_settings, parse_settings
from federator.settings.oidc import OidcSettings
from federator.settings.sections import (
    AuditSettings,
    InstanceSettings,
    MirrorSettings,
    Settings,
    SourceSettings,
    StsSettings,
)

__all__ = [
    "AFTER_CRAWL",
    "AuditSettings",
    "InstanceSettings",
    "MirrorSettings",
    "OidcSettings",
    "Settings",
    "SourceSettings",
    "StsSettings",
    "load_settings",
    "parse_duration",
    "parse_settings",
]
