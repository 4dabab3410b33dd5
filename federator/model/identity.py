"""Identity of the catalog behind an address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from federator.model.digests import canonical_json

#: in place of a namespace's path key: the part of an identity that is about the whole source
WHOLE = ""
#: text for people if a catalog reports no identity
NO_IDENTITY = "no identity"


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity that a catalog reports, in parts: of the whole source, and of namespaces that can be replaced alone.

    ``parts`` are sorted pairs of a scope, which is ``WHOLE`` or the path key of a namespace, and the text that identifies it. An empty
    text means that the catalog does not report it for these credentials. These scopes have nothing to do with those of principals.
    """

    parts: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, whole: str, namespaces: Mapping[str, str] | None = None) -> Self:
        """Build an identity from the part of the whole source and those of namespaces, by path key."""
        return cls(tuple(sorted({**(namespaces or {}), WHOLE: whole}.items())))

    @property
    def by_scope(self) -> dict[str, str]:
        return dict(self.parts)

    def to_json(self) -> str:
        return canonical_json(self.by_scope)

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(tuple(sorted((str(scope), str(value)) for scope, value in json.loads(text).items())))

    def __str__(self) -> str:
        return describe_parts(self.by_scope)


def describe_parts(parts: Mapping[str, str]) -> str:
    """Return the parts of an identity, by scope, as one text for people."""
    texts = [("" if scope == WHOLE else f"{scope}: ") + (value or NO_IDENTITY) for scope, value in sorted(parts.items())]
    return "; ".join(texts) or NO_IDENTITY
