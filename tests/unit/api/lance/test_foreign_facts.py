"""Facts that the service stores about tables: none are read through a link or a base path that leads outside of the table."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import lance
import lance_namespace
import pyarrow as pa
import pytest

from federator.connector import PermissionDenied, SourceSpec
from federator.lance.foreign_locations import require_own_bases
from federator.lance.inspection import REFERS_OUTSIDE, inspect_location
from federator.model.scopes import Scopes
from federator.pipeline.verify import InspectorProcess
from federator.store import verifications
from tests.unit.api.lance.conftest import Service, served
from tests.unit.api.mcp_support import Caller, Running, run_service

SECRET = "salary_of_the_board"
OUTSIDE = (
    "whole", "chain", "relative", "directory", "fragment", "versions", "manifest", "clone", "clone_of_clone", "copied",
    "clone_of_fragment", "data_of_fragment", "versions_of_manifest",
)  # fmt: skip
#: tables that refer to a table of OUTSIDE, which refers to the hidden one
STEPPING = {"clone_of_fragment": "fragment", "data_of_fragment": "fragment", "versions_of_manifest": "manifest"}
OWN = ("own", "branch", "inner")


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[Service]:
    with serve_linked(tmp_path) as service:
        yield service


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The same behind the service with its own sign-in."""
    with (
        serve_linked(tmp_path_factory.mktemp("linked"), serve={"auth": "required", "burst": 10_000}) as linked,
        run_service(linked.index, linked.settings) as running,
    ):
        yield running


@contextmanager
def serve_linked(tmp_path: Path, **more: Any) -> Iterator[Service]:
    """Tables of ``s`` that refer to the hidden table ``vault``, and tables of their own. The root is a mount, which is a link."""
    disk = tmp_path / "disk"
    (disk / "far").mkdir(parents=True)
    (tmp_path / "mount").symlink_to(disk)
    vault = lance.write_dataset(pa.table({SECRET: range(7123)}), str(disk / "vault.lance"))
    vault.tags.create("now", 1)
    clone = vault.shallow_clone(str(disk / "clone.lance"), "now")
    clone.tags.create("then", clone.version)
    clone.shallow_clone(str(disk / "clone_of_clone.lance"), "then")
    shutil.copytree(disk / "clone.lance", disk / "copied.lance")
    (disk / "whole.lance").symlink_to(disk / "vault.lance")
    (disk / "chain.lance").symlink_to(disk / "whole.lance")
    (disk / "relative.lance").symlink_to("far/../vault.lance")
    for name, part in (("directory", "data"), ("versions", "_versions")):
        shutil.copytree(disk / "vault.lance", disk / f"{name}.lance")
        shutil.rmtree(disk / f"{name}.lance" / part)
        (disk / f"{name}.lance" / part).symlink_to(f"../vault.lance/{part}")
    for name, part in (("fragment", "data"), ("manifest", "_versions")):
        shutil.copytree(disk / "vault.lance", disk / f"{name}.lance")
        (file,) = (disk / f"{name}.lance" / part).glob("*.manifest" if part == "_versions" else "*.lance")
        file.unlink()
        file.symlink_to(os.path.relpath(disk / "vault.lance" / part / file.name, file.parent))
    fragment = lance.dataset(str(disk / "fragment.lance"))
    fragment.shallow_clone(str(disk / "clone_of_fragment.lance"), "now")
    for name, part in (("data_of_fragment", "data"), ("versions_of_manifest", "_versions")):
        shutil.copytree(disk / "vault.lance", disk / f"{name}.lance")
        shutil.rmtree(disk / f"{name}.lance" / part)
        (disk / f"{name}.lance" / part).symlink_to(f"../{STEPPING[name]}.lance/{part}")
    for name in OWN:
        lance.write_dataset(pa.table({"no": [1, 2]}), str(disk / f"{name}.lance"))
    lance.dataset(str(disk / "branch.lance")).create_branch("b")
    (data,) = (disk / "inner.lance" / "data").iterdir()
    data.rename(disk / "inner.lance" / data.name)
    data.symlink_to(f"../{data.name}")
    sources = {name: {"impl": "dir", "root": f"{tmp_path}/mount"} for name in ("s", "open")}
    allowed_bases = [f"{disk}/{name}.lance" for name in ("vault", "clone", "fragment", "manifest")]
    sources["open"] = {"impl": "dir", "root": str(disk), "allowed_bases": allowed_bases}  # type: ignore[dict-item]
    with served(tmp_path, sources, **more) as service:
        for name in sources:
            service.crawl(name)
            verify(service, service.settings.source(name).spec)
        yield service


@pytest.mark.parametrize("setting", ["root", "path", None])
def test_a_link_between_the_directory_and_a_table_leads_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str | None
) -> None:
    lance.write_dataset(pa.table({SECRET: range(7)}), str(tmp_path / "vault" / "secret.lance"))
    (team := tmp_path / "team").mkdir()
    (team / "up").symlink_to(tmp_path / "vault")
    namespace = lance_namespace.connect("dir", {"root": str(team), "manifest_enabled": "true"})
    namespace.create_namespace(lance_namespace.CreateNamespaceRequest(id=["n"]))
    namespace.register_table(lance_namespace.RegisterTableRequest(id=["n", "above"], location="up/secret.lance"))
    monkeypatch.chdir(team)
    source = {"impl": "dir", **({setting: str(team)} if setting else {})}
    with served(tmp_path, {"s": source, "hidden": {"impl": "dir", "root": str(tmp_path / "vault")}}) as service:
        for name in ("s", "hidden"):
            service.crawl(name)
            verify(service, service.settings.source(name).spec)
        shown = service.get("/api/v1/tables/s%24n%24above", caller="viewer s").json()["dataset"]
        assert (shown["state"], shown["rows"], shown["schema"]) == (REFERS_OUTSIDE, None, None)
        assert service.post("/v1/table/s%24n%24above/count_rows", caller="viewer s").status_code == 403
        assert service.post("/v1/table/s%24n%24above/count_rows", caller="viewer s,hidden").json() == 7


def test_a_write_stores_only_what_every_declaring_source_permits(tmp_path: Path) -> None:
    """For ``inner`` the link is its own root. For ``outer`` it leads to data that is not below its root."""
    lance.write_dataset(pa.table({"no": [1]}), str(tmp_path / "vault" / "secret.lance"))
    (team := tmp_path / "team").mkdir()
    (team / "up").symlink_to(tmp_path / "vault")
    namespace = lance_namespace.connect("dir", {"root": str(team), "manifest_enabled": "true"})
    namespace.create_namespace(lance_namespace.CreateNamespaceRequest(id=["n"]))
    namespace.register_table(lance_namespace.RegisterTableRequest(id=["n", "above"], location="up/secret.lance"))
    sources = {"outer": {"impl": "dir", "root": str(team)}, "inner": {"impl": "dir", "root": str(team / "up")}}
    with served(tmp_path, sources) as service:
        for name in sources:
            service.crawl(name)
        body = pa.BufferOutputStream()
        with pa.ipc.new_stream(body, pa.schema({"no": pa.int64()})) as stream:
            stream.write_table(pa.table({"no": [2]}))
        path, rows = "/v1/table/inner%24secret/insert", body.getvalue().to_pybytes()
        written = service.ask("POST", path, data=rows, caller="writer inner")
        assert (written.status_code, written.json()["num_inserted_rows"]) == (200, 1), written.text
        shown = service.get("/api/v1/tables/outer%24n%24above", caller="viewer outer").json()["dataset"]
        assert (shown["state"], shown["rows"], shown["schema"]) == (REFERS_OUTSIDE, None, None)


def verify(service: Service, spec: SourceSpec) -> None:
    """Inspect and store all due locations of a source, as a crawl does, without Spark."""
    with service.index.read() as connection:
        due = verifications.list_due_locations(connection, spec.name, now=time.time() + 1, max_age=0, limit=1000)
    with InspectorProcess(spec, 60) as inspector:
        rows = [
            {
                "canonical": each.canonical, "location": each.location, "checked_at": time.time(), "checked_through": spec.name,
                "access": "",
                **asdict(inspector.inspect(each.location)),
            }
            for each in due
        ]  # fmt: skip
    with service.index.write() as connection:
        verifications.save_verifications(connection, rows)


def ask_all_routes(caller: Caller) -> dict[str, str]:
    """The responses of all routes of the API, of MCP and of the Lance protocol that show something of a table, by route."""
    texts = {}
    for path, operations in caller.json("/openapi.json")["paths"].items():
        if "get" in operations and "events" not in path:
            for value in {"s", *(f"s${name}" for name in OUTSIDE)} if "{" in path else {""}:
                url = re.sub(r"\{[^}]+\}", quote(value, safe=""), path)
                texts[url] = caller.get(url).text
    for words in (*OUTSIDE, SECRET, f"column:{SECRET}", "state:valid", "*"):
        texts[f"search {words}"] = caller.get("/api/v1/search", q=words, facets="true").text
    for name in OUTSIDE:
        texts[f"describe_table {name}"] = str(caller.call("describe_table", {"id": f"s${name}"}))
        for body in ({}, {"load_detailed_metadata": True}, {"check_declared": True, "vend_credentials": True}):
            url = f"{caller.url}/v1/table/{quote(f's${name}', safe='')}/describe"
            texts[f"describe {name} {body}"] = httpx.post(url, json=body, headers=caller.headers, timeout=60).text
    return texts


def test_no_route_shows_facts_of_what_is_elsewhere(running: Running) -> None:
    caller = running.caller("outside", scopes=Scopes.parse([f"s${name}" for name in OUTSIDE]))
    texts = ask_all_routes(caller)
    leaks = re.compile(rf"{SECRET}|\b7123\b|vault")
    assert {url: leaks.findall(text) for url, text in texts.items() if leaks.search(text)} == {}
    for name in OUTSIDE:
        shown = caller.json(f"/api/v1/tables/s${name}")["dataset"]
        assert (shown["state"], shown["rows"], shown["schema"]) == (REFERS_OUTSIDE, None, None)


@pytest.mark.parametrize("root", ["lake", "./lake/", "team/../lake", "{}/lake", "file:{}/lake"])
def test_a_link_between_root_and_table_is_seen_in_each_spelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("payroll", "team"):
        lance.write_dataset(pa.table({SECRET: [1]}), str(tmp_path / "lake" / name / "t.lance"))
    (tmp_path / "lake" / "team" / "linked").symlink_to(tmp_path / "lake" / "payroll")
    spec = SourceSpec("s", "dir", {"root": root.format(tmp_path)})
    with InspectorProcess(spec, 60) as inspector:
        states = [inspector.inspect(f"{tmp_path}/lake/team/{name}").state for name in ("t.lance", "linked/t.lance")]
    assert states == ["valid", REFERS_OUTSIDE]


def test_a_visible_table_is_no_stepping_stone_to_a_hidden_one(running: Running) -> None:
    for name, stone in STEPPING.items():
        url = f"{running.url}/v1/table/s%24{name}/count_rows"
        for hidden, expected in (
            (f"s${name},s${stone}", 403),
            (f"s${name},s$vault", 403),
            (f"s${name},s${stone},s$vault", 200),
        ):
            caller = running.caller(f"{name} {hidden}", scopes=Scopes.parse(hidden.split(",")))
            assert httpx.post(url, json={}, headers=caller.headers, timeout=60).status_code == expected, hidden


@pytest.mark.parametrize("name", STEPPING)
def test_allowed_bases_are_no_stepping_stone(tmp_path: Path, name: str) -> None:
    with serve_linked(tmp_path):
        location = f"{tmp_path}/disk/{name}.lance"
        stone, vault = (f"{tmp_path}/disk/{each}.lance" for each in (STEPPING[name], "vault"))
        assert inspect_location(location, {}, allowed=[stone]).state == REFERS_OUTSIDE
        assert inspect_location(location, {}, allowed=[stone, vault]).state == "valid"


@pytest.mark.parametrize(
    "spelling",
    [
        "file://{own}/.\t./.\n./vault.lance", "file://{own}/..\\../vault.lance", "file://{vault}?/../own.lance",
        "file://{vault}#/../own.lance", "file://{own}/%2e%2E/vault.lance", "{own}/../vault.lance", "~/vault.lance",
        "S3://bucket/own.lance/../vault.lance",
    ],
)  # fmt: skip
def test_a_base_path_in_a_spelling_of_unclear_meaning_is_not_read(tmp_path: Path, spelling: str) -> None:
    own, vault = str(tmp_path / "own.lance"), str(tmp_path / "vault.lance")
    base = lance.DatasetBasePath(spelling.format(own=own, vault=vault), "b")
    dataset = lance.write_dataset(pa.table({"a": [1]}), own, initial_bases=[base])
    assert dataset.base_paths()[1].path == base.path
    with pytest.raises(PermissionDenied, match="spelling"):
        require_own_bases(own, dataset, [str(tmp_path)])
    assert inspect_location(own, {}, allowed=[str(tmp_path)]).state == "denied"


def test_a_table_with_very_many_links_is_not_read(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"a": [1]}), str(tmp_path / "t.lance"))
    for number in range(1001):
        (tmp_path / "t.lance" / "data" / f"{number}.lance").symlink_to(f"../../{number}")
    assert inspect_location(str(tmp_path / "t.lance"), {}, allowed=[str(tmp_path)]).state == "denied"


def test_a_base_path_with_a_space_is_read(tmp_path: Path) -> None:
    vault = lance.write_dataset(pa.table({"a": [1]}), str(tmp_path / "my lake" / "a b.lance"))
    vault.tags.create("now", 1)
    vault.shallow_clone(str(tmp_path / "clone.lance"), "now")
    clone = str(tmp_path / "clone.lance")
    assert inspect_location(clone, {}).state == REFERS_OUTSIDE
    assert inspect_location(clone, {}, allowed=[str(tmp_path / "my lake")]).state == "valid"


def test_those_who_see_everything_see_the_remedy(running: Running) -> None:
    caller = running.caller("everything")
    for name in OUTSIDE:
        assert "allowed_bases" in caller.json(f"/api/v1/tables/s${name}")["dataset"]["message"]
    assert caller.json("/api/v1/tables/s$vault")["dataset"]["rows"] == 7123


@pytest.mark.parametrize("name", OWN)
def test_a_table_below_a_linked_root_is_verified(running: Running, name: str) -> None:
    shown = running.caller(f"own {name}", scopes=Scopes.parse([f"s${name}"])).json(f"/api/v1/tables/s${name}")["dataset"]
    assert (shown["state"], shown["rows"]) == ("valid", 2)


def test_a_source_allows_what_its_tables_refer_to(running: Running) -> None:
    for name in OUTSIDE:
        shown = running.caller(f"open {name}", scopes=Scopes.parse([f"open${name}"])).json(f"/api/v1/tables/open${name}")[
            "dataset"
        ]
        assert (shown["state"], shown["rows"]) == ("valid", 7123), name


def test_a_write_stores_no_facts_of_what_is_elsewhere(linked: Service) -> None:
    body = pa.BufferOutputStream()
    with pa.ipc.new_stream(body, pa.schema({SECRET: pa.int64()})) as stream:
        stream.write_table(pa.table({SECRET: [1, 2]}))
    for name in ("clone", "fragment"):
        both = f"writer s${name},s$vault"
        written = linked.ask("POST", f"/v1/table/s%24{name}/insert", data=body.getvalue().to_pybytes(), caller=both)
        assert (written.status_code, written.json()["num_inserted_rows"]) == (200, 2), written.text
        assert linked.post(f"/v1/table/s%24{name}/count_rows", caller=both).json() == 7125
        shown = linked.get(f"/api/v1/tables/s%24{name}", caller=f"viewer s${name}").json()["dataset"]
        assert (shown["state"], shown["rows"]) == (REFERS_OUTSIDE, None)


def test_no_write_goes_through_a_link(linked: Service) -> None:
    body = pa.BufferOutputStream()
    with pa.ipc.new_stream(body, pa.schema({"no": pa.int64()})) as stream:
        stream.write_table(pa.table({"no": [1]}))
    vault = Path(linked.settings.source("s").properties["root"]) / "vault.lance"
    files = sorted(vault.rglob("*"))
    for name in ("whole", "chain", "relative", "directory", "fragment", "versions", "manifest"):
        for mode in ("overwrite", "exist_ok"):
            url = f"/v1/table/s%24{name}/create?mode={mode}"
            refused = linked.ask("POST", url, data=body.getvalue().to_pybytes(), caller=f"writer s${name}")
            assert refused.status_code == 403 or refused.json()["version"] is None, (name, mode, refused.text)
    assert sorted(vault.rglob("*")) == files
    url = "/v1/table/s%24whole/create?mode=overwrite"
    both = linked.ask("POST", url, data=body.getvalue().to_pybytes(), caller="writer s$whole,s$vault")
    assert (both.status_code, both.json()["version"]) == (200, 2), "one who may see both tables"


def test_the_past_shows_no_schema_of_what_is_elsewhere(linked: Service) -> None:
    """A table that its source allowed to refer to another one, and no longer does."""
    before = {"as_of": datetime.now(UTC).isoformat()}
    properties = {key: text for key, text in linked.settings.source("open").properties.items() if key != "allowed_bases"}
    verify(linked, SourceSpec("open", "dir", properties))
    for url, query in (
        ("/api/v1/tables/open%24clone", before),
        ("/api/v1/datasets", before),
        ("/api/v1/tables/open%24clone", {}),
    ):
        response = linked.get(url, params=query, caller="viewer open$clone")
        assert response.status_code == 200
        assert SECRET not in response.text, url
    assert SECRET in linked.get("/api/v1/tables/open%24vault", params=before).text
