"""docs/reference/api.md, Lance protocols: its responses are those of the service."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from federator.api.lance.errors import STATUS
from federator.api.lance.unsupported import UNSUPPORTED
from federator.testing.contract import unique_name
from tests.unit.api.lance.conftest import served
from tests.unit.api.lance.test_protocol_routes import ROUTES

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "api.md"
_PAIR = re.compile(r"```bash\n(curl [^\n]+)\n```\n```json\n([^\n]+)\n```")


def _text() -> str:
    text = DOCS.read_text(encoding="utf-8")
    return text[text.index("## Lance REST protocol") :]


def test_every_command_answers_as_it_is_shown(tmp_path: Path) -> None:
    shown = _PAIR.findall(_text())
    assert len(shown) >= 7
    source = {"impl": "federator.testing:CONNECTOR", "store": unique_name("docs"), "storage.region": "eu-1"}
    with served(tmp_path, {"lake_hive": source}, bare=True) as service:
        for command, answer in shown:
            # As a person would paste it.
            ran = subprocess.run(
                ["bash", "-c", command.replace("http://127.0.0.1:8042", service.url)],
                capture_output=True,
                text=True,
                check=True,
            )
            assert json.loads(ran.stdout) == json.loads(answer), command


def test_the_table_of_routes_has_those_of_the_client() -> None:
    rows = re.findall(r"^\| `(GET|POST) (/[^` ]+)`[^|]*\| ([^|]*)", _text(), re.MULTILINE)
    known = {(route.method, route.url("{id}").replace("no_index", "{index_name}").removeprefix("/v1")) for route in ROUTES}
    assert {(method, path) for method, path, _ in rows} <= known
    assert {path for _, path, what in rows if what.strip() == "Unsupported"} == set(UNSUPPORTED)


def test_the_table_of_codes_is_the_service_s() -> None:
    rows = re.findall(r"^\| ([\d, ]+) \| (\d{3}) \|", _text(), re.MULTILINE)
    documented = {int(code): int(status) for codes, status in rows for code in codes.split(",")}
    assert documented == STATUS
