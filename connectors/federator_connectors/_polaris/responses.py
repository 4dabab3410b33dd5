"""The one place where Polaris's responses are held against what the server sends always, by call.

Required is what Polaris 1.4.1 was recorded to send in every response (``tests/recordings/polaris``).
"""

from __future__ import annotations

from federator.connector.shapes import NAME, TEXTS, maybe

CATALOGS = {"catalogs": [{"name": NAME, "properties": TEXTS}]}
CONFIG = {"defaults": TEXTS, "overrides": dict}
NAMESPACES = {"namespaces": [[str]]}
NAMESPACE = {"namespace": [str], "properties": TEXTS}
TABLES = {"identifiers": [{"namespace": [str], "name": NAME}]}
TABLE = {
    "table": {"name": NAME, "format": NAME, "base-location": maybe(str), "doc": maybe(str), "properties": maybe(TEXTS)},
}  # fmt: skip
ROLES = {"roles": [{"name": NAME}]}
GRANTS = {"grants": [{"type": NAME}]}
