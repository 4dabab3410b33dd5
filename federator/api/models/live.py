"""The live status."""

from __future__ import annotations

from pydantic import Field

from federator.api.models.base import ResponseModel


class LiveState(ResponseModel):
    """What has changed since the last event is read again from its own route. The digests can only be compared."""

    overview: str = Field(examples=["9f2c81aa03b1d6e4"], description="digest of `GET /api/v1/overview` without its `live`")
    runs: str = Field(examples=["41b0c2d9e8f7a6b5"], description="digest of the newest visible runs and their states")
    plans: str = Field(examples=["77aa01f3c2d4e5b6"], description="digest of the newest visible plans and their states")
    revisions: dict[str, int] = Field(examples=[{"lake_hive": 12}], description="revision of each visible source")
