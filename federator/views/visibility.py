"""What a principal may see, as all views filter by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from federator.model.scopes import Scopes
from federator.planning.user_declarations import user_plan_target


@dataclass(frozen=True, slots=True)
class Visibility:
    """What a principal may read: its name as an actor, its scopes, and the mirrors that are visible completely.

    ``origins`` are the origin sources, by mirror, of mirrors whose origin and target are both visible at least in part.
    """

    name: str
    scopes: Scopes
    mirrors: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def fully_visible_sources(self) -> list[str]:
        """List the sources that are covered completely. Only their counts may be shown, because counts cover the whole source."""
        return sorted({prefix[0] for prefix in self.scopes.prefixes if len(prefix) == 1})

    def sees_whole(self, mirror: str) -> bool:
        """Return whether both sources of a mirror, or the target of a plan by a user, are covered completely.

        Guards, evidence and messages may be about any of their objects.
        """
        target_of_user = user_plan_target(mirror)
        return mirror in self.mirrors or self.scopes.covers_all or (
            target_of_user is not None and self.scopes.covers((target_of_user,))
        )  # fmt: skip
