"""The directory catalog, on a local file system and on S3 (moto's server)."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any, ClassVar

import lance_namespace
import pytest

from federator.lance.facade import CatalogNamespace
from federator.model import ROOT, Path
from federator.testing.contract import ConnectorContract, unique_name
from federator.testing.contract.base import Location
from federator_connectors._dir.settings import DirSettings
from federator_connectors.dir import CONNECTOR, DirConnector


class _Dir(ConnectorContract):
    connector = CONNECTOR

    @pytest.fixture
    def namespace(self, properties: dict[str, str]) -> Path:
        return ROOT

    @pytest.fixture
    def location(self, properties: dict[str, str]) -> Location:
        return lambda name: f"{properties['root']}/{name}.lance"

    def odd_location(self, location: Location, number: int, name: str) -> str:
        return ""


class TestLocal(_Dir):
    against = "a local directory"

    @pytest.fixture
    def properties(self, tmp_path: FilePath) -> dict[str, str]:
        return {"root": str(tmp_path)}

    unreachable: ClassVar = {"root": "/nonexistent/lance/tables"}


class _WithManifest(DirConnector):
    """The connector with the capabilities that the suite's choice of tests is to see: those of its settings."""

    capabilities = CONNECTOR.capabilities_for(DirSettings(manifest_enabled="true"))


class _WithoutManifest(DirConnector):
    capabilities = CONNECTOR.capabilities_for(DirSettings(manifest_enabled="false"))


class TestManifest(ConnectorContract):
    """A namespace of the manifest that pylance's own directory namespace has made, two levels deep."""

    against = "a local directory with pylance's manifest, two levels deep"
    connector = _WithManifest()
    unreachable: ClassVar = {"root": "/nonexistent/lance/tables"}

    @pytest.fixture
    def properties(self, tmp_path: FilePath) -> dict[str, str]:
        return {"root": str(tmp_path), "manifest_enabled": "true"}

    @pytest.fixture
    def namespace(self, tmp_path: FilePath) -> Path:
        pylance = lance_namespace.connect("dir", {"root": str(tmp_path)})
        for path in (["upper"], ["upper", "lower"]):
            pylance.create_namespace(lance_namespace.CreateNamespaceRequest(id=path))
        return ("upper", "lower")

    @pytest.fixture
    def location(self, tmp_path: FilePath) -> Location:
        return lambda name: f"{tmp_path}/some where/{name}.lance"

    def test_pylance_chooses_the_location_of_a_table_in_a_namespace(self, facade: CatalogNamespace, namespace: Path) -> None:
        # In a namespace pylance chooses the place, and names it by a hash.
        declared = facade.declare_table(lance_namespace.DeclareTableRequest(id=[*namespace, "t"]))
        assert str(declared.location).endswith("_upper$lower$t")


class TestWithoutManifest(_Dir):
    against = "a local directory, manifests left out"
    connector = _WithoutManifest()

    @pytest.fixture
    def properties(self, tmp_path: FilePath) -> dict[str, str]:
        return {"root": str(tmp_path), "manifest_enabled": "false"}


class TestS3(_Dir):
    against = "S3 as moto serves it over HTTP"

    declares_once = False

    @pytest.fixture
    def properties(self, s3_storage_options: dict[str, str]) -> dict[str, str]:
        import boto3

        bucket = unique_name("tables").replace("_", "-")
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
