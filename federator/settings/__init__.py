"""The configuration: one TOML file, typed. Nothing is read at import, and secrets stay references until they are used.

Relative paths (the SQLite file, a directory source's root) count from the file's own directory, so that a command gives the same
answer from wherever it is run.
"""

from federator.settings.reading import load, parse
from federator.settings.sections import AuditSettings, InstanceSettings, MirrorSettings, OidcSettings, Settings, SourceSettings
from federator.settings.values import AFTER_CRAWL, DEFAULT_FILE, seconds

__all__ = [
    "AFTER_CRAWL",
    "DEFAULT_FILE",
    "AuditSettings",
    "InstanceSettings",
    "MirrorSettings",
    "OidcSettings",
    "Settings",
    "SourceSettings",
    "load",
    "parse",
    "seconds",
]
