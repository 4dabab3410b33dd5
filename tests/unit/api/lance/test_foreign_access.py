"""What a table refers to outside its location: the check of its links, and its list of versions."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from sqlalchemy import event

from federator.api.lance.foreign_access import may_read_locations
from federator.lance.foreign_locations import ForeignLocations
from federator.model import LocationAliases
from federator.model.scopes import Scopes
from tests.fixtures.index_content import fill
from tests.fixtures.index_content import table as record
from tests.unit.api.lance.conftest import Service, served


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
            answer = service.post(f"/v1/table/{table}/version/list", {}, caller=caller)
            assert answer.status_code == 200, answer.text
            return {version["version"]: version for version in answer.json()["versions"]}

        shown = list_versions("s%24own", "viewer s$own")
        assert set(shown[copied]) == {"version", "manifest_path"}
        assert [version.get("metadata", {}).get("total_rows") for version in shown.values()] == [None, "20", "30", "40"]
        for caller, status in (("viewer s$own", 403), ("viewer s$own,s$vault", 200)):
            described = service.post("/v1/table/s%24own/version/describe", {"version": copied}, caller=caller)
            assert described.status_code == status, described.text
        assert list_versions("open%24own", "viewer open$own")[copied]["metadata"]["total_rows"] == "3", "the source allows it"


def test_all_links_of_a_table_are_one_query(own_service: Service) -> None:
    index, scopes = own_service.index, Scopes.parse(["m"])
    fill(index, "m", *(record("m", "ns", f"t{number}", location=f"/lake/t{number}.lance") for number in range(100)))

    def may_read(numbers: Iterable[int]) -> tuple[bool, int]:
        statements: list[Any] = []
        event.listen(index.engine, "before_cursor_execute", note := lambda *_: statements.append(None))
        outside = [[f"file:///lake/t{number}.lance/data"] for number in numbers]
        allowed = may_read_locations(index, LocationAliases(), scopes, "/lake/own.lance", ForeignLocations(outside), list)
        event.remove(index.engine, "before_cursor_execute", note)
        return allowed, len(statements)

    allowed, number = may_read([0])
    assert allowed
    assert may_read(range(100)) == (True, number)
    assert may_read(range(101)) == (False, number)
