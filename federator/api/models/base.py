"""The base class and the freshness of responses.

Responses contain the dataclasses of ``federator.store`` and ``federator.views`` as they are.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from federator.runtime.redaction import mask_readable
from federator.views.freshness import Freshness

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class ResponseModel(BaseModel):
    """The base of the responses that are more than one object of the index, such as pages."""

    model_config = ConfigDict(from_attributes=True)


FreshnessList = Annotated[list[Freshness], Field(description="freshness of every source that the response is based on")]


def fields_of(view: DataclassInstance) -> dict[str, Any]:
    """Return the fields of a view, for a response that adds some."""
    return {field.name: getattr(view, field.name) for field in fields(view)}


def to_json(body: Any) -> bytes:
    """Return a model or a dataclass as JSON, with secrets of URLs and known secrets masked."""
    content: bytes = _adapter(type(body)).dump_json(body)  # type: ignore[arg-type]  # every type is hashable
    return mask_readable(content.decode()).encode()


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
