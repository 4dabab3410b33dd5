"""The directory catalog, on a local file system and on S3 (moto's server)."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any, ClassVar

import pytest

from federator.model import ROOT, Path
from federator.testing.contract import ConnectorContract, fresh
from federator.testing.contract.base import Location
from federator_connectors.dir import CONNECTOR


class _Dir(ConnectorContract):
    connector = CONNECTOR

    @pytest.fixture
    def namespace(self, properties: dict[str, str]) -> Path:
        return ROOT

    @pytest.fixture
    def location(self, properties: dict[str, str]) -> Location:
        return lambda name: f"{properties['root']}/{name}.lance"

    def odd(self, location: Location, number: int, name: str) -> str:
        return ""


class TestLocal(_Dir):
    @pytest.fixture
    def properties(self, tmp_path: FilePath) -> dict[str, str]:
        return {"root": str(tmp_path)}

    unreachable: ClassVar = {"root": "/nonexistent/lance/tables"}


class TestS3(_Dir):
    @pytest.fixture
    def properties(self, s3_storage_options: dict[str, str]) -> dict[str, str]:
        import boto3

        bucket = fresh("tables").replace("_", "-")
        client: Any = boto3.client(
            "s3",
            endpoint_url=s3_storage_options["aws_endpoint"],
            region_name=s3_storage_options["aws_region"],
            aws_access_key_id=s3_storage_options["aws_access_key_id"],
            aws_secret_access_key=s3_storage_options["aws_secret_access_key"],
        )
        client.create_bucket(Bucket=bucket)
        return {"root": f"s3://{bucket}"} | {f"storage.{key}": value for key, value in s3_storage_options.items()}

    unreachable: ClassVar = {"storage.aws_endpoint": "http://127.0.0.1:9"}
