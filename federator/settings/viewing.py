"""How the tree is shown."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from federator.settings.values import Name


class TreeSettings(BaseModel):
    """The merged view over all sources: whose table is meant where several have one of a name, and how many leading levels of a source
    are left out since they only name its catalog (default: one where its connector calls the first level ``catalog``)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    priority: tuple[Name, ...] = ()
    skip: dict[Name, int] = Field(default_factory=dict)
