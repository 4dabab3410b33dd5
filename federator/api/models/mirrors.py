"""Responses about mirrors."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from federator.api.models.base import FreshnessList, ResponseModel
from federator.store.runs import Run
from federator.views.plans import PlanSummary


class Mirror(ResponseModel):
    """A mirror with its configuration and its state."""

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=True, populate_by_name=True)

    name: str = Field(examples=["hive-to-glue"])
    origin: str = Field(alias="from", examples=["lake_hive"])
    target: str = Field(alias="to", examples=["aws"])
    schedule: str | None = Field(examples=["@every 15m"])
    paused: bool
    state: str = Field(
        examples=["ok"], description="held: a plan waits for a decision; else the state of the last run, or never"
    )
    tables: int = Field(examples=[120], description="number of tables in its ledger")
    namespaces: int = Field(examples=[4], description="number of namespaces in its ledger")
    last_plan: PlanSummary | None
    last_run: Run | None
    held: list[PlanSummary] = Field(description="up to 10 plans that wait for a decision, newest first")
    rule: dict[str, Any] = Field(examples=[{"include": ["hive$sales$*"], "delete": "owned"}])
    toml: str = Field(
        examples=['[mirrors.hive-to-glue]\nfrom = "lake_hive"\nto = "aws"\n'],
        description="its section of the configuration as TOML, without keys that have their default",
    )
    digest: str = Field(description="digest of the rule; plans and ledger entries are bound to it")
    freshness: FreshnessList


class MirrorPage(ResponseModel):
    """A page of mirrors, ordered by name."""

    mirrors: list[Mirror]
    next: str | None = Field(description="cursor of the next page; null: last page")
