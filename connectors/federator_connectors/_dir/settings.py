"""Settings of the impl ``dir``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from federator.connector import ConfigError, ConnectorSettings, one_of, option
from federator.connector.options import root_to_uri

AUTO, ON, OFF = "auto", "true", "false"


@dataclass(frozen=True, kw_only=True)
class DirSettings(ConnectorSettings):
    """Settings of one directory. ``path`` and ``root`` are one setting with two names. Default: the working directory."""

    root_keys: ClassVar[tuple[str, ...]] = ("path", "root")

    path: str | None = option(
        "path", doc="The directory of the tables: a path, or a URI of file, s3, gs, az, abfss or hdfs. Same as root."
    )
    manifest_enabled: str = option("manifest_enabled", AUTO, doc="auto: read child namespaces if the directory has a __manifest; true: also create namespaces, and the manifest with the first one; false: ignore the manifest.", parse=one_of(AUTO, ON, OFF))  # fmt: skip  # noqa: E501

    def check(self, where: str) -> None:
        """Raise ConfigError if ``path`` and ``root`` differ."""
        if self.path and self.root and self.path != self.root:
            raise ConfigError(
                f"{where}path = {self.path} and {where}root = {self.root} differ",
                hint="set only one of them: they are one setting",
            )

    @classmethod
    def read_root(cls, impl: str, properties: Mapping[str, str]) -> str:
        """Return the directory as a URI: by default, the working directory. Raise ConfigError as in the base class."""
        return super().read_root(impl, properties) or root_to_uri(None)

    @property
    def root_uri(self) -> str:
        return root_to_uri(self.directory)

    @property
    def directory(self) -> str:
        return self.path or self.root or "."
