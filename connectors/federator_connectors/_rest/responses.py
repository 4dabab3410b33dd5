"""Required fields of the responses of Lance REST servers, by call.

For the official protocol these are the fields that pylance's RestAdapter (14.0.2) sends in every response: a namespace without
properties is ``{}``, and a table always has a location. For the general protocol they are the fields that its document requires.
``list_all_names`` requires the list of a listing.
"""

from __future__ import annotations

from federator.connector.shapes import NAME, TEXTS, maybe

NAMESPACE = {"properties": maybe(TEXTS)}
TABLE = {"location": NAME, "properties": maybe(TEXTS)}
GENERAL_NAMESPACE = {"name": NAME, "properties": maybe(TEXTS)}
GENERAL_TABLE = {"name": NAME, "location": maybe(str), "properties": maybe(TEXTS), "managedBy": maybe(str)}
EXISTS = {"exists": bool}
