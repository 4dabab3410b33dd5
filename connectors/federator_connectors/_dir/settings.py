"""What a source of impl ``dir`` is configured with."""

from __future__ import annotations

from dataclasses import dataclass

from federator.connector import ConfigError, Settings, option

AUTO, ON, OFF = "auto", "true", "false"


def _choice(text: str) -> str:
    if text.lower() not in (AUTO, ON, OFF):
        raise ValueError(f"one of {AUTO}, {ON}, {OFF}")
    return text.lower()


@dataclass(frozen=True, kw_only=True)
class DirSettings(Settings):
    """``path`` and ``root`` are one setting with two names; without either it is the current working directory."""

    path: str | None = option(
        "path", doc="The directory of the tables: a path, or a URI of file, s3, gs, az, abfss or hdfs. Same as root."
    )
    manifest_enabled: str = option("manifest_enabled", AUTO, doc="auto: read child namespaces where the directory has a __manifest; true: also create namespaces, and the manifest with the first; false: leave it out.", parse=_choice)  # fmt: skip  # noqa: E501

    def __post_init__(self) -> None:
        if self.path and self.root and self.path != self.root:
            raise ConfigError(
                f"dir.path = {self.path} and dir.root = {self.root} differ", hint="they are one setting: keep one"
            )

    @property
    def directory(self) -> str:
        return self.path or self.root or "."
