"""The server under test against the recording of Unity Catalog OSS 0.6.0, and against the models of its official client.

With the stub this is what makes it worth testing against; with a real server it shows where that one has moved on.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path as FilePath
from typing import Any

import pytest
import requests

from tests.fixtures.unity import API, UnityCatalogOfTest, UnityServer, unity_kind
from tests.recordings.unity.probe import Probe, masked
from tests.stubs.unity import UnityStub, World

pytestmark = pytest.mark.timeout(120)

RECORDINGS = FilePath(__file__).parents[2] / "recordings" / "unity"


def recorded(name: str) -> list[str]:
    return (RECORDINGS / name).read_text(encoding="utf-8").splitlines()


def test_every_recorded_call_is_answered_as_recorded(unity_server: UnityServer) -> None:
    if unity_kind() == "url" and unity_server.call("GET", "/catalogs").json()["catalogs"]:
        pytest.skip(f"{unity_server.url} has catalogs, and was recorded empty")
    seen: list[str] = []
    Probe(unity_server.url + API, seen.append, unity_server.token).run()
    answered = "\n".join(seen).splitlines()
    assert [masked(line) for line in answered] == [masked(line) for line in recorded("unity-oss-0.6.0.txt")]


def test_masks_hide_ids_and_times_only() -> None:
    line = 'LIST: tables=2000 pages=21 1.45 MB 0.57s {"id":"685b8bc6-8103-468f-b8b7-1bed5c13a15b","at":1795178283021} 1402/s'
    assert masked(line) == 'LIST: tables=2000 pages=21 1.45 MB DURATION {"id":"ID","at":TIME} DURATION'


@pytest.mark.parametrize("line", recorded("unity-oss-0.6.0-auth.txt")[2:], ids=lambda line: line.partition(" -> ")[0])
def test_every_recorded_sign_in_is_answered_as_recorded(line: str) -> None:
    request, _, response = line.partition(" -> ")
    status, _, text = response.partition(" ")
    with UnityStub(World(token="the-token")) as stub:
        answer = requests.request(
            "POST" if request.startswith("POST") else "GET", f"{stub.url}{API}/catalogs", timeout=10,
            json={"name": "c1"} if request.startswith("POST") else None, headers=_credentials(request),
        )  # fmt: skip
    assert answer.status_code == int(status.rstrip(","))
    if status == "401":
        # The recording leaves out what repeats the line before.
        before, _, after = text.partition("...")
        assert answer.text.startswith(before)
        assert answer.text.endswith(after)
    elif request.startswith("POST"):
        assert (answer.json()["owner"], answer.json()["created_by"]) == ("admin", "admin")


def _credentials(request: str) -> dict[str, str]:
    shown = request.partition(", ")[2].strip().replace("<token.txt>", "the-token")
    if shown.startswith("Bearer"):
        return {"Authorization": shown}
    return {"Cookie": shown.removeprefix("Cookie ")} if "Cookie" in request else {}


def test_the_official_client_reads_every_answer(unity_catalog: UnityCatalogOfTest) -> None:
    """Its models are strict: an unknown column type, a missing name or a text for a number is an error."""
    listed, table = asyncio.run(_by_official_client(unity_catalog))
    assert [row["name"] for row in listed] == ["first", "second"]
    column = table["columns"][0]
    assert (column["type_name"], column["type_text"], table["data_source_format"]) == ("LONG", "bigint", "TEXT")
    assert json.loads(column["type_json"])["type"] == "long"


async def _by_official_client(catalog: UnityCatalogOfTest) -> tuple[list[Any], Any]:
    from unitycatalog import client as unity

    configuration = unity.Configuration(host=catalog.server.url + API)
    async with unity.ApiClient(configuration) as connection:
        if catalog.server.token:
            connection.set_default_header("Authorization", f"Bearer {catalog.server.token}")
        catalogs, schemas, tables = unity.CatalogsApi(connection), unity.SchemasApi(connection), unity.TablesApi(connection)
        assert (await catalogs.get_catalog(catalog.name)).name == catalog.name
        assert catalog.name in [each.name for each in (await catalogs.list_catalogs()).catalogs or []]
        await schemas.create_schema(unity.CreateSchema(name="made", catalog_name=catalog.name, properties={"k": "v"}))
        await schemas.update_schema(f"{catalog.name}.made", unity.UpdateSchema(properties={"x": "y"}))
        assert (await schemas.get_schema(f"{catalog.name}.made")).properties == {"x": "y"}
        assert [each.name for each in (await schemas.list_schemas(catalog.name)).schemas or []] == ["made"]
        for name in ("first", "second"):
            await tables.create_table(_table_to_create(unity, catalog.name, name))
        listed = await tables.list_tables(catalog.name, "made", max_results=50)
        table = await tables.get_table(f"{catalog.name}.made.first")
        return [row.to_dict() for row in listed.tables or []], json.loads(table.to_json())


def _table_to_create(unity: Any, catalog: str, name: str) -> Any:
    column = unity.ColumnInfo(
        name="id", type_text="bigint", type_name=unity.ColumnTypeName.LONG, position=0, nullable=True,
        type_json='{"name":"id","type":"long","nullable":true,"metadata":{}}',
    )  # fmt: skip
    return unity.CreateTable(
        name=name, catalog_name=catalog, schema_name="made", table_type=unity.TableType.EXTERNAL, columns=[column],
        data_source_format=unity.DataSourceFormat.TEXT, storage_location=f"s3://lake/{name}", properties={"table_type": "lance"},
    )  # fmt: skip
