"""docs/reference/api.md, the federation's own API: its commands run, its configuration is valid, its search fields exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from federator.settings import parse_settings
from federator.store import runs
from federator.views.search.fields import FIELDS
from tests.web.conftest import Service
from tests.web.conftest import filled as filled
from tests.web.conftest import service as service

_DOCS = (Path(__file__).parents[2] / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
PAGE = _DOCS.split("## The federation's own API\n", 1)[1].split("\n## ", 1)[0]


def test_every_command_is_answered(service: Service) -> None:
    runs.finish_run(service.index, service.run, "ok", summary={})
    api = f"{service.url}/api/v1"
    entry = httpx.get(f"{api}/overview").json()["attention"][0]
    names = {"API": api, "DIGEST": service.plan, "RUN": service.run.id, "KEY": quote(entry["key"]), "SEEN": entry["digest"]}
    commands = re.findall(r"^curl .*$", PAGE, re.MULTILINE)
    answers: dict[str, Any] = {}
    for command in commands:
        ran = subprocess.run(["bash", "-c", command], env={**os.environ, **names}, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, (command, ran.stderr, ran.stdout)
        if command.endswith('/events"'):
            assert "event: end\n" in ran.stdout
        elif "/events?" in command:
            assert "event: state\n" in ran.stdout
        else:
            answers[command] = json.loads(ran.stdout)
    assert len(answers) > 14
    (item,) = [answer for command, answer in answers.items() if "/search" in command]
    assert ([node["id"] for node in item["nodes"]], item["facets"]["counted"]) == (["lake$sales$orders"], 1)
    (merged,) = [answer for command, answer in answers.items() if "view=merged&path" in command]
    assert [node["name"] for node in merged["nodes"] if node["conflict"]] == ["parted"]
    (held,) = [answer for command, answer in answers.items() if "state=held" in command]
    assert [plan["digest"] for plan in held["plans"]] == [service.plan]


def test_its_configuration_is_one(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    sources = {name: {"impl": "federator.testing:CONNECTOR"} for name in ("lake", "copy")}
    assert list(
        parse_settings({**tomllib.loads(block), "sources": sources}, tmp_path / "federator.toml").merged_tree_levels
    ) == ["lake", "copy"]


def test_its_fields_are_those_of_the_search() -> None:
    assert set(re.findall(r"`([a-z]+):[^`]*`", PAGE.split("### Search")[1].split("###")[0])) == set(FIELDS)
