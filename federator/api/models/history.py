"""Responses about the differences between two snapshots."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from federator.api.models.base import FreshnessList, ResponseModel
from federator.store.field_types import Timestamp
from federator.store.snapshots import RunSnapshot
from federator.views.diff import Difference


class SnapshotInfo(ResponseModel):
    """A snapshot: its time, the run at whose end it was taken, and the revision of each source."""

    at: Timestamp
    run: str | None
    revisions: dict[str, int]


class SnapshotPage(ResponseModel):
    """A page of the snapshots that can be selected, newest first."""

    snapshots: list[RunSnapshot]
    next: str | None = Field(description="cursor of the next page; null: last page")


class DifferencePage(ResponseModel):
    """A page of the differences between two snapshots."""

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=True)

    from_: SnapshotInfo = Field(alias="from")
    to: SnapshotInfo
    totals: dict[str, int] = Field(examples=[{"added": 2, "removed": 0, "changed": 1}])
    differences: list[Difference]
    next: str | None
    freshness: FreshnessList
