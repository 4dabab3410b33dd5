"""What a table refers to outside its location: the check of its links, and its list of versions."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
import requests
from sqlalchemy import event

from federator.api.lance.foreign_access import may_read_locations
from federator.lance.foreign_locations import ForeignLocations
from federator.model.scopes import Scopes
from federator.settings import parse_settings
from federator.testing.contract import unique_name
from federator.views.datasets import list_datasets
from tests.fixtures.index_content import fill
from tests.fixtures.index_content import table as record
from tests.unit.api.lance.conftest import CALLER, Service, served


def test_the_list_of_versions_shows_nothing_of_one_that_refers_to_a_hidden_table(tmp_path: Path) -> None:
    """An owner of a table has replaced the manifest of an old version by that of a shallow clone."""
    disk = tmp_path / "disk"
    vault = lance.write_dataset(pa.table({"a": [1, 2, 3]}), str(disk / "vault.lance"))
    vault.tags.create("now", 1)
    vault.shallow_clone(str(disk / "clone.lance"), "now")
    for rows in (10, 20, 30, 40):
        lance.write_dataset(pa.table({"a": range(rows)}), str(disk / "own.lance"), mode="overwrite")
    (manifest,) = (disk / "clone.lance" / "_versions").glob("*.manifest")
    copied = lance.dataset(str(disk / "clone.lance")).version
    assert (disk / "own.lance" / "_versions" / manifest.name).exists()
    shutil.copy(manifest, disk / "own.lance" / "_versions" / manifest.name)
    sources = {"s": {"impl": "dir", "root": str(disk)}, "open": {"impl": "dir", "root": str(disk)}}
    sources["open"]["allowed_bases"] = [str(disk / "vault.lance")]  # type: ignore[assignment]
    with served(tmp_path, sources) as service:
        for name in sources:
            service.crawl(name)

        def list_versions(table: str, caller: str) -> dict[int, dict[str, Any]]:
            response = service.post(f"/v1/table/{table}/version/list", {}, caller=caller)
            assert response.status_code == 200, response.text
            return {version["version"]: version for version in response.json()["versions"]}

        shown = list_versions("s%24own", "viewer s$own")
        assert set(shown[copied]) == {"version", "manifest_path"}
        assert [version.get("metadata", {}).get("total_rows") for version in shown.values()] == [None, "20", "30", "40"]
        for caller, status in (("viewer s$own", 403), ("viewer s$own,s$vault", 200)):
            described = service.post("/v1/table/s%24own/version/describe", {"version": copied}, caller=caller)
            assert described.status_code == status, described.text
        assert list_versions("open%24own", "viewer open$own")[copied]["metadata"]["total_rows"] == "3", "the source allows it"


def test_all_links_of_a_table_are_one_query(own_service: Service) -> None:
    index, settings, scopes = own_service.index, own_service.settings, Scopes.parse(["mem"])
    fill(index, "mem", *(record("mem", "ns", f"t{number}", location=f"/lake/t{number}.lance") for number in range(100)))

    def may_read(locations: Iterable[str]) -> tuple[bool, int]:
        statements: list[Any] = []
        event.listen(index.engine, "before_cursor_execute", note := lambda *_: statements.append(None))
        outside = ForeignLocations([[location] for location in locations])
        allowed = may_read_locations(index, settings, scopes, settings.source("mem"), "/lake/own.lance", outside, list)
        event.remove(index.engine, "before_cursor_execute", note)
        return allowed, len(statements)

    data = [f"file:///lake/t{number}.lance/data" for number in range(101)]
    allowed, number = may_read(data[:1])
    assert allowed
    assert may_read(data[:100]) == (True, number)
    assert may_read(data) == (False, number)
    assert may_read([f"{data[0]}/{'a/' * 900}x"])[0]
    assert may_read([f"{data[0]}/{'a/' * 900}{link}" for link in range(3)]) == (False, 0), "nothing is asked about too much"


def test_what_is_declared_around_a_hidden_table_does_not_cover_it(tmp_path: Path) -> None:
    """Who may declare a location above a hidden table, or sees its directory as a table, cannot read a clone of it."""
    disk = tmp_path / "disk"
    hidden = lance.write_dataset(pa.table({"a": [1, 2, 3]}), str(disk / "team" / "secret.lance"))
    hidden.tags.create("now", 1)
    hidden.shallow_clone(str(disk / "clone.lance"), "now")
    sources = {
        "s": {"impl": "dir", "root": str(disk)},
        "team": {"impl": "dir", "root": str(disk / "team")},
        "other": {"impl": "federator.testing:CONNECTOR", "store": unique_name("other")},
    }
    with served(tmp_path, sources) as service:
        for name in ("s", "team"):
            service.crawl(name)
        fill(
            service.index,
            "other",
            *(record("other", f"n{number}", "t", location=str(disk.parents[number])) for number in range(2)),
        )
        fill(
            service.index,
            "s",
            record("s", "clone", location=str(disk / "clone.lance")),
            record("s", "team", location=str(disk / "team")),
        )
        for scopes, status in (("s$clone", 403), ("s", 403), ("s$clone,other", 403), ("s,team", 200)):
            response = service.post("/v1/table/s%24clone/count_rows", caller=f"viewer {scopes}")
            assert response.status_code == status, (scopes, response.text)


def test_a_directory_covers_no_table_in_it_that_the_index_does_not_know(tmp_path: Path) -> None:
    """The root of a hidden source is listed as a table of the source around it. Its new tables are not in the index yet."""
    disk = tmp_path / "disk"
    hidden = lance.write_dataset(pa.table({"a": [1, 2, 3]}), str(disk / "team" / "fresh.lance"))
    hidden.tags.create("now", 1)
    hidden.shallow_clone(str(disk / "clone.lance"), "now")
    sources = {"s": {"impl": "dir", "root": str(disk)}, "team": {"impl": "dir", "root": str(disk / "team")}}
    plain = {"s": sources["s"]}
    for number, configured in enumerate((sources, plain)):
        (directory := tmp_path / str(number)).mkdir()
        with served(directory, configured) as service:
            service.crawl("s")
            assert service.get("/api/v1/tables/s%24team").status_code == 200
            response = service.post("/v1/table/s%24clone/count_rows", caller="viewer s")
            assert response.status_code == 403, response.text


def test_a_link_leads_to_no_table_of_a_hidden_source_that_the_index_does_not_know(tmp_path: Path) -> None:
    """It is new since the last crawl of its source. The root of a source says where it belongs, however it is configured. A source
    without a root may have tables anywhere else."""
    sources = _build_linked_sources(tmp_path / "data")
    links = ("vault", "free", "team")
    with served(tmp_path, sources, bare=True) as service:
        service.crawl("lake")
        (tmp_path / "data" / "secret").unlink()
        for caller, readable in (
            ("lake", set()), ("lake,vault", {"vault"}), ("lake,more", {"free"}), ("lake,more,vault,team", set(links)),
        ):  # fmt: skip
            answers = {
                name: service.post(f"/v1/table/lake%24{name}/count_rows", caller=f"viewer {caller}").status_code
                for name in links
            }
            assert answers == {name: 200 if name in readable else 403 for name in links}, caller
        for name in links:
            deleted = service.post(f"/v1/table/lake%24{name}/delete", {"predicate": "true"}, caller="writer lake")
            assert deleted.status_code == 403, deleted.text
    assert all(lance.dataset(str(tmp_path / "data" / "lake" / f"{name}.lance")).count_rows() == 3 for name in links)


@pytest.mark.parametrize("crawled", [True, False])
def test_an_alias_hides_no_declaration_and_no_root(tmp_path: Path, crawled: bool) -> None:
    sources = _build_linked_sources(tmp_path / "data")
    sources["all"] = {**sources["more"], "store": unique_name("all"), "root": str(tmp_path / "data")}
    aliases = {f"file://{tmp_path}/data/vault": "file:///srv/lake-vault"}
    with served(tmp_path, sources, bare=True, locations={"aliases": aliases}) as service:
        for name in ("lake", "vault")[: 1 + crawled]:
            service.crawl(name)
        for caller, status in (("lake,all", 403), ("lake,all,vault", 200)):
            response = service.post("/v1/table/lake%24vault/count_rows", caller=f"viewer {caller}")
            assert response.status_code == status, response.text


def test_nothing_is_read_elsewhere_while_a_hidden_root_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = _build_linked_sources(tmp_path / "data")
    sources["vault"]["root"] = "${VAULT_ROOT}"
    monkeypatch.setenv("VAULT_ROOT", str(tmp_path / "data" / "vault"))
    with served(tmp_path, sources, bare=True) as service:
        service.crawl("lake")
        assert service.post("/v1/table/lake%24free/count_rows", caller="viewer lake,more").status_code == 200
        monkeypatch.delenv("VAULT_ROOT")
        refused = service.post("/v1/table/lake%24free/count_rows", caller="viewer lake,more")
        assert refused.status_code == 403, refused.text
        assert "vault" not in refused.text.lower()


def _build_linked_sources(data: Path) -> dict[str, dict[str, Any]]:
    """Write the source `lake` of links to tables that no source declares: in the roots `vault`, `more`, and in that of `team` in it,
    whose secret is in a file."""
    targets = {"vault": data / "vault" / "new.lance", "free": data / "free" / "new.lance", "team": data / "free/team/new.lance"}
    (data / "lake").mkdir(parents=True)
    for name, target in targets.items():
        lance.write_dataset(pa.table({"a": [1, 2, 3]}), str(target))
        (data / "lake" / f"{name}.lance").symlink_to(target)
    (data / "secret").write_text("not-a-key", encoding="utf-8")
    team = {"dir.path": str(data / "free" / "team"), "storage.secret_access_key": f"file:{data / 'secret'}"}
    return {
        "lake": {"impl": "dir", "root": str(data / "lake")},
        "vault": {"impl": "dir", "root": str(data / "vault")},
        "more": {"impl": "federator.testing:CONNECTOR", "store": unique_name("more"), "root": str(data / "free")},
        "team": {"impl": "dir", **team},
    }


def test_the_root_of_a_hidden_source_is_not_covered(own_service: Service) -> None:
    """A base of a table may be a directory, and the paths of its files lead on from there."""
    root = str(own_service.root / "team")
    sources = {
        "own": {"impl": "dir", "root": str(own_service.root)},
        "team": {"impl": "dir", "root": root},
        "deeper": {"impl": "dir", "root": f"{root}/inner"},
    }
    settings = parse_settings({"sources": sources}, own_service.root / "federator.toml")
    fill(own_service.index, "own", record("own", "team", location=root))

    def may_read(*visible: str) -> bool:
        scopes, location = Scopes.parse(visible), f"{own_service.root}/c.lance"
        outside = ForeignLocations([[f"file://{root}"]])
        return may_read_locations(own_service.index, settings, scopes, settings.source("own"), location, outside, list)

    assert may_read("own", "team")
    assert not may_read("own")
    assert not may_read("own$team")


def test_a_declaration_covers_what_its_own_source_could_open(own_service: Service) -> None:
    """Whoever declares a location in a catalog has not the keys of another source, or means the bucket of another store."""
    index, base = own_service.index, "s3://lake/base.lance"
    (secret := own_service.root / "secret").write_text("b", encoding="utf-8")
    keys = {"storage.access_key_id": f"file:{secret}", "storage.secret_access_key": f"file:{secret}"}
    memory = {"impl": "federator.testing:CONNECTOR", "store": unique_name("m"), "schemes": ["file", "s3"]}
    sources = {
        "own": {**memory, **keys},
        "alike": {**memory, **keys},
        "without": memory,
        "elsewhere": {**memory, **keys, "storage.endpoint": "http://127.0.0.1:1"},
    }
    settings = parse_settings({"sources": sources}, own_service.root / "federator.toml")
    for name in sources:
        fill(index, name, record(name, "ns", "t", location=base))

    def may_read(*visible: str) -> bool:
        outside = ForeignLocations([[f"{base}/data"]])
        return may_read_locations(
            index, settings, Scopes.parse(visible), settings.source("own"), "s3://lake/c.lance", outside, list
        )

    assert may_read("own")
    assert may_read("alike")
    assert not may_read("without", "elsewhere")


def test_no_table_is_created_through_a_link(tmp_path: Path) -> None:
    """The link of somebody who may write in the source's directory leads to the root of another source, or anywhere."""
    for name in ("disk", "vault", "out"):
        (tmp_path / name).mkdir()
    lance.write_dataset(pa.table({"a": [1]}), str(tmp_path / "vault" / "secret.lance"))
    sources = {name: {"impl": "dir", "root": str(tmp_path / name)} for name in ("disk", "vault")}
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, pa.schema([("a", pa.int64())])) as stream:
        stream.write_table(pa.table({"a": [7]}))
    with served(tmp_path, sources) as service:
        service.crawl("vault")
        for name in ("vault", "out"):
            (tmp_path / "disk" / f"{name}.lance").symlink_to(tmp_path / name)
            fill(service.index, "disk", record("disk", name, location=str(tmp_path / "disk" / f"{name}.lance")))
            for operation in ("create?mode=overwrite", "create", "insert", "insert?mode=overwrite", "merge_insert?on=a"):
                url = f"{service.url}/v1/table/disk%24{name}/{operation}"
                response = requests.post(url, data=sink.getvalue(), headers={CALLER: f"writer disk${name}"}, timeout=60)
                assert response.status_code in (400, 403, 404, 409), (operation, response.text)
        assert sorted(path.name for path in (tmp_path / "vault").iterdir()) == ["secret.lance"]
        assert list((tmp_path / "out").iterdir()) == []


def test_a_location_that_cannot_be_resolved_disturbs_no_drop(tmp_path: Path) -> None:
    """Any catalog can declare what is no path, or what this service may not look into."""
    lance.write_dataset(pa.table({"a": [1]}), str(tmp_path / "disk" / "t.lance"))
    sources = {
        "s": {"impl": "dir", "root": str(tmp_path / "disk"), "allow_drop": True},
        "odd": {"impl": "federator.testing:CONNECTOR", "store": unique_name("odd")},
    }
    with served(tmp_path, sources) as service:
        service.crawl("s")
        (chain := tmp_path / "chain").mkdir()
        for number in range(1500):
            (chain / f"l{number}").symlink_to(chain / f"l{number + 1}")
        odd = ("/x\0y", "file:///x%00", "/" + "a/" * 20_000 + "x", "/" + "a" * 5000, "/proc/1/root/x", "/proc/self/fd/999999/x")
        odd += (str(chain / "l0"), str(chain / "l0" / "x"))
        fill(service.index, "odd", *(record("odd", f"t{number}", location=text) for number, text in enumerate(odd)))
        assert service.get("/api/v1/datasets").status_code == 200
        dropped = service.post("/v1/table/s%24t/drop", caller="admin s")
        assert dropped.status_code == 200, dropped.text
    assert not (tmp_path / "disk" / "t.lance").exists()


def test_a_page_of_long_locations_asks_for_few_bytes(own_service: Service) -> None:
    """Each location of 4,096 characters has 2,031 directories above it, whose names are four megabytes."""
    index = own_service.index
    deep = [record("mem", "ns", f"t{number}", location=f"/r{number}/" + "a/" * 2030 + "x") for number in range(200)]
    deep += [record("mem", "ns", f"u{number}", location=f"/s{number}/" + "a/" * 590 + "x") for number in range(20)]
    fill(index, "mem", *deep, record("mem", "ns", "above", location="/s1/" + "a/" * 580))
    sent: list[int] = []

    @event.listens_for(index.engine, "before_cursor_execute")
    def note(_connection: Any, _cursor: Any, _statement: str, parameters: Any, *_: Any) -> None:
        sent.append(len(str(parameters)))

    page = list_datasets(index, limit=300)
    event.remove(index.engine, "before_cursor_execute", note)
    assert len(page.datasets) == 221
    assert sum(sent) < 20_000_000, "megabytes, and not some hundred"
    assert [view.location for view in page.datasets if view.inside] == ["file:///s1/" + "a/" * 590 + "x"]
