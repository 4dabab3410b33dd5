"""The checks before a write that every connector has in common."""

from __future__ import annotations

from dataclasses import replace

from federator.connector.errors import ConcurrentModification, Unsupported
from federator.connector.port import Confirm
from federator.model import NamespaceRecord, TableRecord


def check_table(found: TableRecord, expected: TableRecord, confirm: Confirm) -> None:
    """The last step of a connector before it sends a write: compare the table that it just read, then call ``confirm``.

    Raises ConcurrentModification if the table is not as ``expected``, and what ``confirm`` raises. Between this and the write the
    connector reads nothing more from the catalog.
    """
    if replace(expected, source=found.source, path=found.path).digest != found.digest:
        raise ConcurrentModification(
            f"{found.source}: {found.key} is no longer as it was read", hint="read it again and decide anew"
        )
    confirm()


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
