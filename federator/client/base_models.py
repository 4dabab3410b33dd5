"""The base of the client's models, and the model that most of them contain."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from federator.client.display import model_as_html


class Model(BaseModel):
    """The base of all models: immutable, and shown as a table in notebooks."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    def _repr_html_(self) -> str:
        return model_as_html(self)


class Freshness(Model):
    """Revision, state (ok, partial, failed or never) and times of a source's last crawl."""

    source: str
    revision: int
    state: str
    message: str | None
    crawled_at: datetime | None
    published_at: datetime | None
