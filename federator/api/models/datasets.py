"""Responses about datasets and drift, now and in a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from federator.api.models.base import FreshnessList, ResponseModel
from federator.store.field_types import Timestamp
from federator.views.datasets import Dataset
from federator.views.drift import DriftCount, DriftView
from federator.views.history import PastDataset


@dataclass(frozen=True, slots=True)
class DatasetDetail(Dataset):
    """A dataset, and the freshness of the sources that declare it."""

    freshness: FreshnessList


class DatasetPage(ResponseModel):
    """A page of datasets."""

    datasets: list[Dataset]
    next: str | None
    freshness: FreshnessList


class PastDatasetPage(ResponseModel):
    """A page of the datasets of a snapshot. `at` is its time."""

    at: Timestamp
    datasets: list[PastDataset]
    next: str | None


class DriftPage(ResponseModel):
    """A page of drift."""

    drift: list[DriftView]
    next: str | None
    freshness: FreshnessList


class DriftCounts(ResponseModel):
    """Numbers of differences. Kinds and severities without any are left out."""

    counts: list[DriftCount]
    freshness: FreshnessList
