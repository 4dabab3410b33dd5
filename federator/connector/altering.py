"""What ``Catalog.update_namespace`` has in common for every connector. Pure."""

from __future__ import annotations

from federator.connector.errors import ConcurrentModification, Unsupported
from federator.model import NamespaceRecord


def check_namespace(current: NamespaceRecord, before: NamespaceRecord, after: NamespaceRecord, *, doc: bool = True) -> None:
    """Whether a namespace, as it is now, may be given the properties (and with ``doc`` the doc) of ``after``.

    Raises ConcurrentModification where it no longer is as ``before``, Unsupported where more than that would change.
    """
    if current.digest != before.digest:
        raise ConcurrentModification(
            f"{current.source}: the namespace {current.key} is no longer as it was read", hint="read it again and decide anew"
        )
    fixed = ["location", "owner"] if doc else ["location", "owner", "doc"]
    moved = [name for name in fixed if getattr(before, name) != getattr(after, name)]
    if moved:
        raise Unsupported(f"{current.source}: {current.key} is altered in place, but for its {' and its '.join(moved)}")
