"""Required fields of Polaris's responses, by call.

Polaris 1.4.1 sent these fields in every recorded response (``tests/recordings/polaris``).
"""

from __future__ import annotations

from federator.connector.shapes import NAME, TEXTS, maybe

CATALOGS = {"catalogs": [{"name": NAME, "properties": TEXTS}]}
CONFIG = {"defaults": TEXTS, "overrides": dict}
TABLE = {
    "table": {"name": NAME, "format": NAME, "base-location": maybe(str), "doc": maybe(str), "properties": maybe(TEXTS)},
}  # fmt: skip
ROLES = {"roles": [{"name": NAME}]}
GRANTS = {"grants": [{"type": NAME}]}
