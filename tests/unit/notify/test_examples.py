"""The configuration examples of the documentation are valid."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from federator.settings import parse_settings

ROOT = Path(__file__).parents[3]
SHOWN = [("deploy/federator.example.toml", ROOT.joinpath("deploy/federator.example.toml").read_text())] + [
    (name, block)
    for name in ("docs/how-to/notifications.md", "docs/reference/telemetry.md")
    for block in re.findall(r"```toml\n(.*?)```", ROOT.joinpath(name).read_text(), re.DOTALL)
]


@pytest.mark.parametrize(("where", "text"), SHOWN, ids=[f"{name} {number}" for number, (name, _) in enumerate(SHOWN)])
def test_can_be_read(where: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in re.findall(r"\$\{(\w+)\}", text):
        monkeypatch.setenv(
            variable, "https://hooks.example.com/x" if variable.upper().startswith(("SLACK", "FEDERATOR_SLACK")) else "x"
        )
    settings = parse_settings(tomllib.loads(text), tmp_path / "federator.toml")
    assert settings.model_fields_set - {"path", "sources"} == set(tomllib.loads(text))


def test_every_metric_of_the_guide_is_counted() -> None:
    guide = (ROOT / "docs" / "reference" / "telemetry.md").read_text()
    counted = (ROOT / "federator" / "api" / "routes" / "metrics.py").read_text()
    named = {name.removesuffix("_total") for name in re.findall(r"`(federator_\w+)", guide)}
    assert len(named) > 15
    assert [name for name in sorted(named) if f'"{name}"' not in counted] == []
