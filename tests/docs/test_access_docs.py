"""docs/how-to/access.md, sign-in.md and table-credentials.md: their configuration is valid, and the roles are those of the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from federator.api.principals import ROLES
from federator.settings import parse_settings

DIRECTORY = Path(__file__).parents[2] / "docs" / "how-to"
ACCESS, *OTHERS = (
    (DIRECTORY / f"{name}.md").read_text(encoding="utf-8") for name in ("access", "sign-in", "table-credentials")
)


def test_their_configuration_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LAKE_KEY_ID", "LAKE_KEY", "UNITY_TOKEN", "LAKE_SERVICE_ACCOUNT", "AZURE_CLIENT", "AZURE_SECRET"):
        monkeypatch.setenv(name, "long-lived")
    blocks = re.findall(r"```toml\n(.*?)```", "\n".join((ACCESS, *OTHERS)), re.DOTALL)
    settings = parse_settings(tomllib.loads("\n".join(blocks)), tmp_path / "federator.toml")
    assert settings.serve.oidc is not None
    assert dict(settings.serve.oidc.roles) == {"data-readers": "viewer", "data-operators": "operator"}
    assert (settings.serve.requests_per_second, settings.serve.burst) == (100, 200)
    assert settings.sources["lake_hive"].vend == "none"
    assert settings.sources["sales"].vend == "sts"
    assert settings.sources["lakehouse"].vend_methods == ("catalog",)
    assert settings.sources["events"].vend_methods == ("gcs", "azure")


def test_the_roles_are_those_of_the_code() -> None:
    assert tuple(re.findall(r"^\| `(\w+)` \| (?:read|and) ", ACCESS, re.MULTILINE)) == ROLES
