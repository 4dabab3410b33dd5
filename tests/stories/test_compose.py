"""``deploy/compose.yaml`` by the Compose Specification, and what its containers may do. ``test_deploy.py`` runs its commands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import compose_spec
import pytest
import yaml  # type: ignore[import-untyped]

from federator.settings import load_settings

DEPLOY = Path(__file__).parents[2] / "deploy"
TEXT = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
#: the services of the image
BUILT = ("upgrade", "api", "worker")


def parse(text: str) -> compose_spec.PyCompose:
    """Parse a composition after YAML's merges and Compose's interpolation. Raise ValueError if the specification refuses it."""
    interpolated = re.sub(r"\$\{\w+(?::-([^}]*)|:\?[^}]*)?\}", lambda match: match[1] or "value", text)
    return compose_spec.PyCompose.from_json(json.dumps(yaml.safe_load(interpolated)))


def test_it_follows_the_specification() -> None:
    assert set(parse(TEXT).service_names()) == {"postgres", *BUILT}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("read_only:", "readonly:"), ("service_healthy", "healthy"), ("interval: 5s", "interval: soon"), ("volumes:", "volume:")],
)
def test_the_parser_refuses_mistakes(right: str, wrong: str) -> None:
    assert right in TEXT
    with pytest.raises(ValueError):
        parse(TEXT.replace(right, wrong))


@pytest.mark.parametrize("name", BUILT)
def test_a_service_writes_only_where_it_must(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    writable = {volume.split(":")[1] for volume in service["volumes"] if not volume.endswith(":ro")} | {
        mount.split(":")[0] for mount in service["tmpfs"]
    }
    assert writable == {"/tmp", "/var/lib/federator/.federator"}
    # Docker's default is noexec, with which Spark cannot load its native libraries.
    assert service["tmpfs"] == ["/tmp:exec"]


def test_api_and_worker_share_reports_and_staging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDERATOR_INDEX", "sqlite:///unused.db")
    monkeypatch.setenv("FEDERATOR_TOKEN", "t0ken-of-the-test")
    state = load_settings(DEPLOY / "federator.toml").state_dir.relative_to(DEPLOY)
    (home,) = {volume.split(":")[1] for volume in SERVICES["api"]["volumes"] if volume.startswith("./federator.toml:")}
    shared = f"state:{Path(home).parent / state}"
    assert all(shared in SERVICES[name]["volumes"] for name in ("api", "worker"))
    # Docker gives a new volume the owner of the directory in the image.
    assert f"mkdir -m 700 {state} " in (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


def test_every_service_that_stays_has_a_health_check() -> None:
    stays = {name for name, service in SERVICES.items() if service.get("restart") != "no"}
    assert stays == {"postgres", "api", "worker"}
    assert all("test" in SERVICES[name]["healthcheck"] for name in stays)
