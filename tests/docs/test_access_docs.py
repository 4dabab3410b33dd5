"""docs/access.md: its configuration is taken, and its roles are the code's."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from federator.api.access import ROLES
from federator.settings import parse

PAGE = (Path(__file__).parents[2] / "docs" / "access.md").read_text(encoding="utf-8")


def test_its_configuration_is_one(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    settings = parse(tomllib.loads("\n".join(blocks)), tmp_path / "federator.toml")
    assert settings.serve.oidc is not None
    assert dict(settings.serve.oidc.roles) == {"data-readers": "viewer", "data-operators": "operator"}
    assert (settings.serve.requests_per_second, settings.serve.burst) == (100, 200)
    assert settings.sources["lake_hive"].vend_credentials is False


def test_its_roles_are_those_of_the_code() -> None:
    assert tuple(re.findall(r"^\| `(\w+)` \| (?:read|and) ", PAGE, re.MULTILINE)) == ROLES
