"""The credential access boundary that limits a token of Google Cloud Storage to the objects of one table.

Source: Google Cloud IAM, "Create a downscoped token" and "Credential Access Boundaries"; the Common Expression Language's strings.
"""

from __future__ import annotations

from dataclasses import dataclass

from federator.vending.credentials import Access
from federator.vending.locations import TablePrefix

#: the permissions of these predefined roles are available at most; the source's own ones are the other limit
READ_ROLE, WRITE_ROLE = "inRole:roles/storage.objectViewer", "inRole:roles/storage.objectUser"
_LIST_PREFIX = "api.getAttribute('storage.googleapis.com/objectListPrefix', '')"


@dataclass(frozen=True, slots=True)
class AccessBoundary:
    """The only rule of a boundary: the bucket, the available permissions, and the condition for their use."""

    resource: str
    permissions: tuple[str, ...]
    expression: str


def build_access_boundary(prefix: TablePrefix, access: Access) -> AccessBoundary:
    """Return the boundary that allows to list and read the objects below a prefix, and to write them with ``WRITE``."""
    objects = _literal(f"projects/_/buckets/{prefix.bucket}/objects/{prefix.key}/")
    expression = f"resource.name.startsWith({objects}) || {_LIST_PREFIX}.startsWith({_literal(f'{prefix.key}/')})"
    role = WRITE_ROLE if access is Access.WRITE else READ_ROLE
    return AccessBoundary(f"//storage.googleapis.com/projects/_/buckets/{prefix.bucket}", (role,), expression)


def _literal(text: str) -> str:
    """Return a text as a literal of the expression language. ``parse_prefix`` refuses backslashes and control characters."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
