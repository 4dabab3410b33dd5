"""MirrorRule: one mirror's selection, name mapping and policies, as its configuration states them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from federator.model import digest_of

Delete = Literal["never", "owned"]
OnConflict = Literal["report", "adopt_if_same_location"]
OnMissing = Literal["recreate", "report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorRule:
    """A mirror: what of ``origin`` appears where in ``target``, and what may be done about differences.

    ``include`` and ``exclude`` are globs over a table's path in text form (``hive$sales$*``; ``*`` also spans ``$``). ``namespace``
    is a template over the origin's level names (``{database}``; levels are joined by ``$``); None keeps the origin's levels.
    ``min_miss_interval`` and ``guard_window`` are seconds.
    """

    name: str
    origin: str
    target: str
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    namespace: str | None = None
    table: str = "{table}"
    delete: Delete = "owned"
    on_conflict: OnConflict = "report"
    on_missing: OnMissing = "report"
    misses_before_delete: int = 2
    min_miss_interval: float = 600.0
    max_delete_percent: float = 20.0
    max_changes: int = 10_000
    guard_window: float = 86_400.0
    transitive: bool = False
    declare_missing: bool = False
    prune_unselected: bool = False

    @property
    def digest(self) -> str:
        """Binds a plan and the ledger to what the mirror was configured to do."""
        return digest_of(asdict(self))

    @property
    def mapping_digest(self) -> str:
        """Binds a settled declaration to how it was selected, mapped and built; thresholds do not count."""
        return digest_of([self.origin, self.target, self.include, self.exclude, self.namespace, self.table, self.transitive])
