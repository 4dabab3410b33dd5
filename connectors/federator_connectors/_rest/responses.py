"""The one place where responses of Lance REST servers are held against what they send always, by call.

Required is what pylance's RestAdapter (14.0.2) was seen to send in every response (a namespace without properties is ``{}``, a table
always has a location), and for the general protocol what its document requires. Listings must have their list (``pages``).
"""

from __future__ import annotations

from federator.connector.shapes import NAME, TEXTS, maybe

NAMESPACE = {"properties": maybe(TEXTS)}
TABLE = {"location": NAME, "properties": maybe(TEXTS)}
GENERAL_NAMESPACE = {"name": NAME, "properties": maybe(TEXTS)}
GENERAL_TABLE = {"name": NAME, "location": maybe(str), "properties": maybe(TEXTS), "managedBy": maybe(str)}
EXISTS = {"exists": bool}
