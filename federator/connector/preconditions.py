"""Precondition checks that all connectors make before a write."""

from __future__ import annotations

from dataclasses import replace

from federator.connector.errors import ConcurrentModification, Unsupported
from federator.connector.port import Confirm
from federator.model import NamespaceRecord, TableRecord


def check_table(current: TableRecord, expected: TableRecord, confirm: Confirm) -> None:
    """Compare the table that was just read with ``expected``, then call ``confirm``.

    Raise ConcurrentModification if they differ, and any error of ``confirm``. A connector calls this as its last step before it sends a
    write, and reads nothing from the catalog in between.
    """
    if replace(expected, source=current.source, path=current.path).digest != current.digest:
        raise ConcurrentModification(
            f"{current.source}: {current.key} was changed after it was read", hint="read it again before the next attempt"
        )
    confirm()


def check_namespace_update(
    current: NamespaceRecord, before: NamespaceRecord, after: NamespaceRecord, *, doc: bool = True
) -> None:
    """Check that a namespace can be changed from ``before`` to ``after``: only its properties and, with ``doc``, its doc.

    Raise ConcurrentModification if the ``current`` namespace differs from ``before``, Unsupported if other fields would change.
    """
    if current.digest != before.digest:
        raise ConcurrentModification(
            f"{current.source}: the namespace {current.key} was changed after it was read",
            hint="read it again before the next attempt",
        )
    fixed = ["location", "owner"] if doc else ["location", "owner", "doc"]
    changed = [name for name in fixed if getattr(before, name) != getattr(after, name)]
    if changed:
        raise Unsupported(f"{current.source}: the {' and the '.join(changed)} of {current.key} cannot be changed in place")
