"""Direct writes: role and scope are checked first; then journal, catalog, observation, index and audit."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path as FilePath
from typing import Any

import lance_namespace as lance
import pytest
from sqlalchemy import select

from federator.apply import publication
from federator.apply.direct_writes import DirectWriter, WriteRequest
from federator.apply.publication import AffectedObject
from federator.connector import PermissionDenied, ServiceUnavailable, StateError, TableAlreadyExists
from federator.lance.facade import CatalogNamespace
from federator.model import NamespaceRecord, TableRecord
from federator.model.scopes import EVERYTHING
from federator.planning.publication import ObservedObject
from federator.registry import open_catalog
from federator.store import (
    audit_log,
    deployment,
    identities,
    pending_publications,
)
from federator.store import tables as t
from federator.store.leases import acquire_lease
from federator.testing import get_memory_store
from federator.testing.contract import unique_name
from federator.views import listing
from tests.fixtures.index_content import fill
from tests.fixtures.ledger_replay import replay_ledger
from tests.fixtures.waiting import wait_until
from tests.unit.api.lance.conftest import Service
from tests.unit.api.lance.writing_world import World


def test_a_write_is_journalled_published_and_audited(either: World) -> None:
    world = either
    created = world.declare("t")
    assert created.published
    assert world.has("ns", "t")
    assert world.journal() == [("ns$t", "done", None)]
    (event,) = world.audit()
    assert (event["kind"], event["actor"], event["subject"], event["run_id"]) == ("own_write", "ann", "mem$ns$t", created.op_id)
    assert event["detail"]["state"] == "done"
    assert "hunter2" not in json.dumps(event)
    with world.index.read() as connection:
        (line,) = connection.execute(select(t.journal)).mappings()
        assert audit_log.list_unsealed(connection) == []
    assert "hunter2" not in line["change"]
    # The mirrors' ledger is built from the audit, and a person's writes are none of it.
    assert replay_ledger(world.audit()) == {}


def test_a_refused_write_is_recorded_with_its_code_and_raised_as_it_is(world: World) -> None:
    world.declare("t")
    with pytest.raises(TableAlreadyExists, match="ns\\$t"):
        world.declare("t")
    assert world.journal() == [("ns$t", "done", None), ("ns$t", "failed", "5")]
    assert [event["detail"]["state"] for event in world.audit()] == ["done", "failed"]


def test_what_stood_in_the_way_is_in_the_index_afterwards(world: World) -> None:
    get_memory_store(world.name).add_table(("ns", "new"))
    assert not world.has("ns", "new")
    with pytest.raises(TableAlreadyExists):
        world.declare("new")
    assert world.has("ns", "new")


def test_a_call_whose_answer_was_lost_is_looked_for(world: World) -> None:
    def lost(facade: CatalogNamespace) -> Any:
        facade.declare_table(lance.DeclareTableRequest(id=["ns", "t"]))
        raise ServiceUnavailable("the answer got lost")

    with pytest.raises(ServiceUnavailable):
        world.declare("t", call=lost)
    assert world.journal() == [("ns$t", "failed", "17")]
    assert world.has("ns", "t")


def test_the_intent_is_durable_before_the_call(world: World) -> None:
    observed = []

    def call(facade: CatalogNamespace) -> None:
        observed.extend(world.journal())

    world.declare("t", call=call)
    assert observed == [("ns$t", "intent", None)]


def test_a_catalogs_refusal_of_our_sign_in_is_no_401_of_the_callers(tmp_path: FilePath) -> None:
    world = World(tmp_path, faults="refuse:*=16")
    with pytest.raises(PermissionDenied, match="refuses this service's own credentials"):
        world.declare("t")
    assert world.journal() == [("ns$t", "failed", "16")]
    world.writer.close()
    world.index.close()


def test_a_dropped_namespace_takes_what_it_held_out_of_the_index(either: World) -> None:
    world = either
    fill(
        world.index, "mem", NamespaceRecord("mem", ("ns",)), NamespaceRecord("mem", ("ns", "sub")),
        TableRecord("mem", ("ns", "sub", "t"), "s3://b/t.lance"), TableRecord("mem", ("nsx", "t"), "s3://b/u.lance"),
    )  # fmt: skip
    order = WriteRequest("ann", "mem", "drop_namespace", ("ns",), [AffectedObject(("ns",), is_table=False)])
    assert world.writer.write(order, lambda facade: facade.drop_namespace(lance.DropNamespaceRequest(id=["ns"]))).published
    assert not any(world.has(*path, is_table=table) for *path, table in ((("ns"), False), ("ns", "sub", False)))
    assert not world.has("ns", "sub", "t")
    assert world.has("nsx", "t")


def test_while_a_crawl_holds_the_source_a_write_neither_waits_nor_gets_lost(
    either: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = either
    monkeypatch.setattr(publication, "LEASE_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(publication, "_RETRY_SECONDS", 0.02)
    with acquire_lease(world.index, "source:mem"):
        assert not world.declare("one").published
        assert not world.declare("two").published
        assert not world.has("ns", "one")
        # Whoever asks for it here finds it all the same.
        observed = world.pending("ns", "one")
        assert observed is not None
        assert observed.record is not None
        assert (observed.record.path, observed.at) == (("ns", "one"), pytest.approx(time.time(), abs=60))
        # What another does to it meanwhile is seen by the later look.
        get_memory_store(world.name).remove(("ns", "two"))
    wait_until(lambda: world.has("ns", "one"))
    wait_until(lambda: world.pending("ns", "one") is None)
    assert not world.has("ns", "two")
    assert world.declare("three").published


def test_another_process_finds_pending_publications(either: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world = either
    monkeypatch.setattr(publication, "LEASE_WAIT_SECONDS", 0.0)
    world.declare("dropped")
    with acquire_lease(world.index, "source:mem"):
        declared = world.declare("new")
        assert not declared.published
        request = WriteRequest("ann", "mem", "deregister_table", ("ns", "dropped"), [AffectedObject(("ns", "dropped"))])
        assert not world.writer.write(
            request, lambda facade: facade.deregister_table(lance.DeregisterTableRequest(id=["ns", "dropped"]))
        ).published
        url = world.index.engine.url.render_as_string(hide_password=False)
        process = subprocess.run([sys.executable, "-c", _READER, url], capture_output=True, text=True, timeout=120, check=False)
        assert process.stdout.splitlines() == [declared.response.location, "there is no table mem$ns$dropped"], process.stderr


_READER = """
import sys
from pathlib import Path
from federator.api.lance.lookup import get_any_table
from federator.connector import TableNotFound
from federator.model.scopes import EVERYTHING
from federator.settings import parse_settings
from federator.store import open_index

settings = parse_settings({"sources": {"mem": {"impl": "federator.testing:CONNECTOR", "store": "none"}}}, Path("federator.toml"))
index = open_index(sys.argv[1])
print(get_any_table(index, settings, EVERYTHING, ("mem", "ns", "new")).location)
try:
    print(get_any_table(index, settings, EVERYTHING, ("mem", "ns", "dropped")).location)
except TableNotFound as error:
    print(error.message)
"""


def test_the_next_writer_publishes_the_pending_writes_of_a_dead_process(either: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world = either
    monkeypatch.setattr(publication, "LEASE_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(publication, "_RETRY_SECONDS", 0.02)
    with acquire_lease(world.index, "source:mem"):
        assert not world.declare("one").published
        world.writer.close()
    assert not world.has("ns", "one")
    world.writer = DirectWriter(world.index, world.settings)
    world.declare("two")
    wait_until(lambda: world.has("ns", "one") and world.has("ns", "two"))
    wait_until(lambda: pending_publications.list_pending(world.index, "mem") == [])


def test_many_writes_at_once_are_all_made_and_published(either: World) -> None:
    world = either
    created: list[bool] = []
    threads = [threading.Thread(target=lambda n=n: created.append(world.declare(f"t{n}").published)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(created) == 6
    wait_until(lambda: all(world.has("ns", f"t{n}") for n in range(6)))


def test_a_clone_of_an_index_writes_to_no_catalog(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def cloned(*_: Any) -> None:
        raise StateError("this index is a clone")

    monkeypatch.setattr(deployment, "require_original", cloned)
    with pytest.raises(StateError):
        world.declare("t")
    assert world.journal() == []


def test_pages_lose_no_name_on_either_database(either: World) -> None:
    names = sorted(["a", "a b", "a$b", "a%b", "B", "b", "ä", "é", "z", "😀"])
    fill(either.index, "mem", *(TableRecord("mem", ("ns", name), f"s3://b/{n}") for n, name in enumerate(names)))
    observed: list[str] = []
    with either.index.read() as connection:
        while page := listing.list_table_names(
            connection, "mem", ("ns",), after=observed[-1] if observed else "", limit=3, scopes=EVERYTHING
        ):
            assert len(page) <= 3
            observed += page
        assert sorted(observed) == names
        assert (
            len(listing.list_all_table_paths(connection, "mem", after=("ns", observed[4]), limit=100, scopes=EVERYTHING))
            == len(names) - 5
        )
    if either.index.is_sqlite:
        assert observed == names, "PostgreSQL orders them by its own collation, and pages by the same"


def _local_namespace(service: Service, directory: FilePath) -> str:
    """The id, as a URL has it, of a new namespace with a directory of this host."""
    name = unique_name("ns")
    service.store.add_namespace((name,), location=str(directory))
    fill(service.index, "mem", NamespaceRecord("mem", (name,), location=str(directory)))
    return f"mem%24{name}"


def _declare(service: Service, table: str, **body: Any) -> str:
    response = service.post(f"/v1/table/{table}/declare", body)
    assert response.status_code == 200, response.text
    return str(response.json()["location"])


def test_a_new_table_never_gets_the_location_of_another_one(service: Service, tmp_path: FilePath) -> None:
    ns = _local_namespace(service, tmp_path)
    first = _declare(service, f"{ns}%24sw")
    assert first == f"{tmp_path}/sw.lance"
    assert service.post(f"/v1/table/{ns}%24sw/rename", {"new_table_name": "sw_old"}).status_code == 200
    assert _declare(service, f"{ns}%24sw") not in (first, f"file:{first}")

    _declare(service, f"{ns}%24jobnew", location=f"file://{tmp_path}/final.lance/")
    assert _declare(service, f"{ns}%24final") != f"{tmp_path}/final.lance"


def test_a_table_that_its_catalog_renamed_since_the_crawl_keeps_its_location(service: Service, tmp_path: FilePath) -> None:
    ns = _local_namespace(service, tmp_path)
    first = _declare(service, f"{ns}%24t")
    with open_catalog(service.settings.source("mem").spec) as catalog:
        catalog.rename_table(catalog.describe_table((ns.removeprefix("mem%24"), "t")), (ns.removeprefix("mem%24"), "t_old"))
    assert _declare(service, f"{ns}%24t") != first


def test_an_unwritten_location_without_declaration_is_used_again(service: Service, tmp_path: FilePath) -> None:
    ns = _local_namespace(service, tmp_path)
    first = _declare(service, f"{ns}%24t")
    assert service.post(f"/v1/table/{ns}%24t/deregister").status_code == 200
    assert _declare(service, f"{ns}%24t") == first


def test_a_pending_declaration_has_its_location(service: Service, tmp_path: FilePath) -> None:
    ns = _local_namespace(service, tmp_path)
    path = (ns.removeprefix("mem%24"), "renamed")
    record = TableRecord("mem", path, f"{tmp_path}/t.lance")
    pending_publications.add_pending(service.index, "mem", [ObservedObject(path, record, time.time(), is_table=True)])
    try:
        assert _declare(service, f"{ns}%24t") != record.location
    finally:
        pending_publications.remove_published(service.index, "mem", [(True, path)], time.time() + 1)


def test_a_directory_refuses_a_name_whose_location_another_table_has(service: Service) -> None:
    name = unique_name("t")
    location = f"{service.root}/{name}.lance"
    fill(service.index, "plain", TableRecord("plain", ("ns", name), location))
    response = service.post(f"/v1/table/lake%24{name}/declare")
    assert (response.status_code, response.json()["code"]) == (409, 5), response.text
    fill(service.index, "plain", gone=[("ns", name)])
    # The record of this very name is old: a table of a directory cannot have been renamed.
    fill(service.index, "lake", TableRecord("lake", (name,), location))
    assert _declare(service, f"lake%24{name}").removeprefix("file://") == location


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_may_not_write_is_refused_before_anything_is_looked_up(service: Service, role: str) -> None:
    path = service.namespace()
    for url, body in (
        (f"table/{path[0]}%24{path[1]}%24t/declare", {}), (f"table/{path[0]}%24{path[1]}%24t/deregister", {}),
        (f"table/{path[0]}%24{path[1]}%24t/rename", {"new_table_name": "u"}), (f"namespace/{path[0]}%24{path[1]}/drop", {}),
        (f"namespace/{path[0]}%24{path[1]}%24x/create", {}), (f"table/{path[0]}%24{path[1]}%24t/drop", None),
        ("table/no%24such%24t/register", {"location": "s3://b/t"}),
    ):  # fmt: skip
        response = service.ask("POST", f"/v1/{url}", body, caller=f"{role} *")
        assert (response.status_code, response.json()["code"]) == (403, 15), url
    general = service.post("/RegisterTable", {"name": "t", "namespace": list(path), "location": "s3://b/t"}, caller=f"{role} *")
    assert general.status_code == 403


def test_another_catalog_is_not_written_to_until_it_is_confirmed(own_service: Service) -> None:
    """Over /v1: refused before the catalog is asked, with what a person is to do."""
    service, store = own_service, own_service.store
    store.identify("catalog one")
    source, namespace = service.namespace()
    store.identify("catalog two")
    before = store.calls()
    table = f"{source}%24{namespace}%24t"
    writes = (
        (f"namespace/{source}%24{namespace}%24more/create", {}), (f"namespace/{source}%24{namespace}/drop", {}),
        (f"table/{table}/declare", {}), (f"table/{table}/register", {"location": "file:///elsewhere/t"}),
    )  # fmt: skip
    for call, body in writes:
        refused = service.post(f"/v1/{call}", body)
        assert (refused.status_code, refused.json().get("code")) == (503, 17), (call, refused.text)
        assert f"federator sources confirm {source}" in refused.json()["error"], refused.text
    assert store.calls() == before
    with service.index.write() as connection:
        identities.confirm(connection, source, "ann")
    assert service.post(f"/v1/table/{table}/declare").status_code == 200
