"""docs/reference/api.md, table data: its commands run, its table lists the routes, its limits are the defaults."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import lance
import pyarrow as pa

from federator.api.lance import table_metadata, table_read, table_write
from federator.settings.sections import DataSettings
from tests.unit.api.lance.conftest import served

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "api.md"
ROWS = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "name": [f"order {i}" for i in range(1000)],
        "vector": pa.array([[float(i), float(i % 7)] for i in range(1000)], pa.list_(pa.float32(), 2)),
    }
)


def _section() -> str:
    text = DOCS.read_text(encoding="utf-8")
    return text[text.index("## Tables' data") : text.index("## The general spec")]


def _block(language: str) -> str:
    match = re.search(rf"```{language}\n(.*?)```", _section(), re.DOTALL)
    assert match is not None
    return match[1]


def test_every_command_runs(tmp_path: Path) -> None:
    with pa.OSFile(str(tmp_path / "orders.arrow"), "wb") as sink, pa.ipc.new_stream(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    with served(tmp_path, {}) as service:
        script = _block("sh").replace("http://127.0.0.1:8042", service.url).replace("curl -s ", "curl -sSf -w '\\n' ")
        ran = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert ran.stdout.splitlines()[1] == "10"
        found = [pa.ipc.open_file(str(tmp_path / f"{name}.arrow")).read_all()["id"].to_pylist() for name in ("rows", "near")]
        assert found == [[5, 6, 7], [5, 4, 6]]
        table = lance.dataset(str(service.root / "orders.lance"))
        assert (table.version, table.count_rows(), table.tags.get_version("whole")) == (5, 1000, 1)


def test_the_table_names_every_route() -> None:
    routes = {route.path for module in (table_read, table_metadata, table_write) for route in module.router.routes}  # type: ignore[attr-defined]
    known = {path.removeprefix("/v1/table/{id}/").replace("{index_name}", "{name}") for path in routes}
    rows = "".join(line for line in _section().splitlines(keepends=True) if line.startswith("|"))
    named = set(re.findall(r"`([a-z_/{}]+)`", rows))
    assert named <= known
    assert known - named == {"tags/create", "tags/update", "tags/delete"}
    assert "`tags/…`" in rows


def test_the_limits_are_the_defaults() -> None:
    shown = tomllib.loads(_block("toml"))["serve"]["data"]
    assert DataSettings(**shown) == DataSettings()
    assert set(shown) == set(DataSettings.model_fields)
