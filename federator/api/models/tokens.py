"""Requests and responses about API tokens."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from federator.api.models.base import ResponseModel
from federator.store.field_types import OptionalTimestamp, Timestamp
from federator.store.tokens import ApiToken


class TokenView(ResponseModel):
    """A token without its secret."""

    name: Annotated[str, Field(description="the actor in runs and audit events is `token:` and this name", examples=["ci"])]
    role: Annotated[str, Field(examples=["operator"])]
    scopes: Annotated[list[str], Field(examples=[["lake_hive$sales"]])]
    state: Annotated[str, Field(description="active, expired or revoked", examples=["active"])]
    created_at: Timestamp
    created_by: str
    expires_at: Annotated[OptionalTimestamp, Field(description="null: valid until it is revoked")]
    revoked_at: OptionalTimestamp
    revoked_by: str | None

    @classmethod
    def from_token(cls, token: ApiToken, now: float) -> Self:
        return cls(**token.to_json(now))


class TokenPage(ResponseModel):
    """A page of tokens by name."""

    tokens: list[TokenView]
    next: str | None = Field(description="cursor of the next page; null: last page")


class CreatedToken(TokenView):
    """A new token with its secret."""

    token: Annotated[str, Field(description="the secret, which cannot be shown again", examples=["lft_…"])]


class TokenRequest(BaseModel):
    """A request for a token. A token without scopes sees nothing."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "ci", "role": "operator", "scopes": ["lake_hive$sales"]}}
    )

    name: str = Field(max_length=100, description="up to 100 letters, digits and . _ @ -; it can be used only once")
    role: Literal["viewer", "operator", "writer", "admin"] = "viewer"
    scopes: list[Annotated[str, Field(max_length=4000)]] = Field(
        [], max_length=1000, description="visible paths: source, source$namespace, source$namespace$table, or * for all"
    )
    lifetime_days: float | None = Field(90, gt=0, le=36_500, description="null: valid until it is revoked")
