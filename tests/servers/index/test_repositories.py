"""The repositories of the index on both of its databases: ledger, misses, journal, plans, runs and requests."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from sqlalchemy import update

from federator.apply.direct_writes import WriteRequest
from federator.connector import StateError
from federator.model import Coverage, TableRecord, carried_evidence, failed_evidence
from federator.planning.cells import LedgerRow
from federator.planning.changes import Action, Change
from federator.planning.journal_lines import JournalEffect, Question, list_removals, list_unfinished_renames
from federator.planning.misses import Missed, MissUpdate
from federator.planning.publication import ObservedObject
from federator.store import (
    Connection,
    Index,
    job_states,
    journal,
    ledger,
    misses,
    pending_publications,
    plans,
    requests,
    revisions,
    runs,
)
from federator.store import tables as t
from federator.store.journal import NO_MIRROR
from federator.store.leases import acquire_lease
from federator.store.observations import publish_observations
from federator.store.plan_facts import PlanFacts
from tests.fixtures.index_content import fill, intent, owned, table


@pytest.fixture
def index(either_index: Index) -> Index:
    return either_index


def removed(connection: Connection, mirror: str, since: float = 0.0) -> list[str]:
    """What the guards count of a mirror."""
    facts = PlanFacts(connection)
    return list_removals(facts.lines(mirror, Question.REMOVALS, since), facts.table)


class TestRepositories:
    def test_ledger(self, index: Index) -> None:
        fill(index, "lake", table("lake", "s", "a"))
        entry = owned("lake", "s$a", "aws", op_id="1")
        with index.write() as connection:
            ledger.upsert_entry(connection, entry)
            ledger.upsert_entry(connection, replace(entry, op_id="2"))
            ledger.upsert_entry(connection, replace(entry, origin_path="s$gone", target_path="s$gone"))
            # Of other mirrors, origins and targets
            ledger.upsert_entry(connection, replace(entry, mirror="n", target_path="n$a"))
            ledger.upsert_entry(connection, replace(entry, origin_source="past", target_path="past$a"))
            ledger.upsert_entry(connection, replace(entry, target_source="elsewhere", target_path="s$elsewhere"))
            ledger.upsert_entry(connection, replace(entry, origin_path="s", target_path="s", is_table=0))
        with index.read() as connection:
            rows = [LedgerRow(**row) for row in connection.execute(ledger.select_rows("m", "lake", 1, "aws")).mappings()]
            there = {row.target_path: (row.op_id, row.origin_exists) for row in rows}
            assert there == {"s$a": ("2", True), "s$gone": ("1", False), "past$a": ("1", False)}
            before = connection.execute(ledger.select_rows("m", "lake", 0, "aws")).mappings()
            assert [row["origin_exists"] for row in before] == [False] * 3
            facts = PlanFacts(connection)
            assert [namespace_entry.target_path for namespace_entry in facts.namespace_entries("m")] == ["s"]
            assert facts.owned_tables("m", "aws", ["s", "s$a", "s$other", "s$elsewhere", "n$a"]) == {"s$a"}
            sides = {("lake", "origin"), ("past", "origin"), ("aws", "target"), ("elsewhere", "target")}
            assert facts.ledger_sides("m") == sides
            assert facts.ledger_sides("n") == {("lake", "origin"), ("aws", "target")}
            assert ledger.count_tables(connection, "m") == 4
        with index.write() as connection:
            for target, path in (("aws", "past$a"), ("elsewhere", "s$elsewhere")):
                ledger.delete_target_entries(connection, target, path, is_table=True, mirror="m")
            ledger.delete_target_entries(connection, "aws", "s", is_table=False, mirror="m")
        with index.read() as connection:
            assert misses.list_missing_origins(connection, "lake", 1) == {"s$gone"}
        with index.write() as connection:
            misses.save_misses(connection, "lake", "digest", MissUpdate({"s$gone": [1.0]}, frozenset()))
            misses.save_misses(connection, "lake", "digest", MissUpdate({"s$gone": [1.0, 2.0]}, frozenset()))
            ledger.delete_target_entries(connection, "aws", "s$gone", is_table=True, mirror="m")
            assert misses.list_misses(connection, "lake") == {"s$gone": [1.0, 2.0]}
            assert misses.list_misses_of(connection, "lake", "s$gone") == [1.0, 2.0]
            assert [e.target_path for e in ledger.list_entries(connection, "m")] == ["s$a"]
        revisions.register_source(index, "lake", "memory", "another principal")
        with index.write() as connection:
            assert misses.list_misses(connection, "lake") == {}
            # A process that was configured before, and whose crawl ends only now.
            misses.save_misses(connection, "lake", "digest", MissUpdate({"s$gone": [3.0]}, frozenset()))
            assert misses.list_misses(connection, "lake") == {}
            assert misses.list_misses_of(connection, "lake", "s$gone") == []
            assert misses.stored_misses(connection, "lake") == {"s$gone": Missed([3.0], "digest")}
            misses.save_misses(connection, "lake", "another principal", MissUpdate({"s$gone": [4.0]}, frozenset(["s$gone"])))
            assert misses.list_misses(connection, "lake") == {"s$gone": [4.0]}
            misses.save_misses(connection, "lake", "another principal", MissUpdate({}, frozenset(["s$gone"])))
            assert misses.stored_misses(connection, "lake") == {}

    def test_journal(self, index: Index) -> None:
        change = Change(Action.DEREGISTER_TABLE, "aws", "x", "lake", "x", "").to_json()
        with index.write() as connection:
            for seq, action in enumerate(("deregister_table", "update_table", "declare_table")):
                journal.insert_intent(connection, intent(str(seq), action, seq=seq, target_source="aws", change=change))
            assert [i.op_id for i in journal.list_open_intents(connection, "m")] == ["0", "1", "2"]
            journal.record_outcome(connection, "0", "done")
            journal.record_outcome(connection, "1", "done", code=JournalEffect.LOCATION_CHANGED)
            (left,) = journal.list_open_intents(connection, "m")
            assert left == intent("2", "declare_table", seq=2, target_source="aws", change=change, intent_at=left.intent_at)
            assert removed(connection, "m") == ["x", "x"]
            assert removed(connection, "m", time.time() + 1) == []

    def test_an_outcome_without_an_intent_is_refused(self, index: Index) -> None:
        with index.write() as connection:
            journal.insert_intent(connection, intent("one"))
        with index.write() as connection, pytest.raises(StateError, match="no intent 'two'"):
            journal.record_outcome(connection, "two", "done")

    def test_a_crawl_replaces_what_was_pending_before_it(self, index: Index) -> None:
        paths = [("read", "t"), ("gone", "t"), ("failed", "t"), ("kept", "t"), ("read", "later")]
        items = [ObservedObject(path, table("lake", *path), 1.0, is_table=True) for path in paths[:-1]]
        items += [ObservedObject(paths[-1], None, 3.0, is_table=True), ObservedObject(("read", "t"), None, 1.0, is_table=False)]
        pending_publications.add_pending(index, "lake", items)
        pending_publications.add_pending(index, "aws", items[:1])
        assert sorted(pending_publications.list_pending(index, "lake"), key=str) == sorted(items, key=str)
        failed, carried = failed_evidence(17, "busy"), carried_evidence(1)
        listed = {
            "": Coverage("lake", ()), "read": Coverage("lake", ("read",)), "failed": Coverage("lake", ("failed",), failed),
            "kept": Coverage("lake", ("kept",), carried),
        }  # fmt: skip
        with index.write() as connection:
            pending_publications.remove_crawled(connection, "lake", 2.0, listed)
        assert sorted(pending_publications.list_pending(index, "lake"), key=str) == sorted(items[2:5], key=str)
        assert len(pending_publications.list_pending(index, "aws")) == 1
        # An older observation replaces no newer one, and a publication removes only what it has seen.
        pending_publications.add_pending(index, "lake", [replace(items[4], at=2.5), replace(items[3], at=4.0)])
        pending_publications.remove_published(index, "lake", [(True, path) for path in paths], 4.0)
        assert [(item.path, item.at) for item in pending_publications.list_pending(index, "lake")] == [(("kept", "t"), 4.0)]

    def test_one_mirror_forgets_its_own_entry_and_a_takeover_everybodys(self, index: Index) -> None:
        entry = owned("lake", "s$a", "aws")
        with index.write() as connection:
            for mirror in ("m", "n"):
                ledger.upsert_entry(connection, replace(entry, mirror=mirror))
                ledger.upsert_entry(connection, replace(entry, mirror=mirror, target_path="s$b"))
            ledger.delete_target_entries(connection, "aws", "s$a", is_table=True, mirror="m")
            left = {mirror: [e.target_path for e in ledger.list_entries(connection, mirror)] for mirror in ("m", "n")}
            assert left == {"m": ["s$b"], "n": ["s$a", "s$b"]}
            ledger.delete_target_entries(connection, "aws", "s$b", is_table=True, mirror=None)
            left = {mirror: [e.target_path for e in ledger.list_entries(connection, mirror)] for mirror in ("m", "n")}
            assert left == {"m": [], "n": ["s$a"]}

    def test_a_rename_is_no_deletion_and_waits_for_its_second_half(self, index: Index) -> None:
        first, second = Action.DEREGISTER_TABLE, Action.DECLARE_TABLE
        renames = {pair: Change(first, "aws", "x", "lake", "x", "", pair=pair) for pair in ("a -> b", "c -> d")}

        def carried_out(action: Action, pair: str) -> None:
            op_id = f"op{next(numbers)}"
            change = replace(renames[pair], action=action).to_json()
            journal.insert_intent(connection, intent(op_id, action.value, target_source="aws", change=change))
            journal.record_outcome(connection, op_id, "done", code=JournalEffect.RENAMED)

        numbers = count()
        with index.write() as connection:
            carried_out(first, "a -> b")
            carried_out(first, "c -> d")
            assert list_unfinished_renames(journal.iter_lines(connection, "m", Question.RENAMES, 0)) == list(renames.values())
            carried_out(second, "a -> b")
            assert list_unfinished_renames(journal.iter_lines(connection, "m", Question.RENAMES, 0)) == [renames["c -> d"]]
            carried_out(first, "a -> b")
            assert list_unfinished_renames(journal.iter_lines(connection, "m", Question.RENAMES, 0)) == [
                renames["c -> d"],
                renames["a -> b"],
            ]
            assert list_unfinished_renames(journal.iter_lines(connection, "m", Question.RENAMES, time.time() + 1)) == []
            assert list_unfinished_renames(journal.iter_lines(connection, "n", Question.RENAMES, 0)) == []
            assert removed(connection, "m") == []

    def test_a_call_that_was_given_up_counts_once_the_target_shows_its_effect(self, index: Index) -> None:
        """Found by the proof (seed 777, runs 57710 and 82302): removals that landed late were not counted by the guard."""
        there = {
            name: TableRecord("aws", ("s", name), f"s3://x/{name}", native_id="1")
            for name in ("gone", "kept", "moved", "stayed", "left", "remade", "dropped", "open")
        }
        revisions.register_source(index, "aws", "memory", "d")
        shown = (there["kept"], replace(there["moved"], location="s3://x/new"), there["stayed"])
        shown += (replace(there["remade"], native_id="2"), there["open"])
        with acquire_lease(index, "source:aws") as lease:
            publish_observations(index, lease, "aws", "r", [ObservedObject(record.path, record, 1.0, True) for record in shown])
        numbers = count()

        def intend(name: str, action: Action, state: str | None, code: str | None = None) -> None:
            before = there[name]
            after = replace(before, location="s3://x/new") if action is Action.UPDATE_TABLE else None
            change = Change(action, "aws", before.key, "lake", before.key, "", before, after)
            op_id = f"late{next(numbers)}"
            where = {"mirror": "late", "target_source": "aws", "target_path": before.key}
            with index.write() as connection:
                journal.insert_intent(connection, intent(op_id, action.value, **where, change=change.to_json()))
                if state is not None:
                    journal.record_outcome(connection, op_id, state, code=code)

        def counted() -> list[str]:
            with index.read() as connection:
                return sorted(removed(connection, "late"))

        intend("gone", Action.DEREGISTER_TABLE, "failed", "not_made")
        intend("kept", Action.DEREGISTER_TABLE, "failed", "not_made")
        intend("moved", Action.UPDATE_TABLE, "failed", "not_made")
        intend("stayed", Action.UPDATE_TABLE, "failed", "not_made")
        intend("left", Action.RECREATE_TABLE, None)
        # Taken away by half of a recreation, and made by somebody: found by the proof (seed 20261122, run 23262).
        intend("remade", Action.RECREATE_TABLE, "failed", "not_made")
        # Nobody has looked since: found by the proof (seed 20261124, run 312950).
        intend("open", Action.UPDATE_TABLE, None)
        # Moved, and then dropped by somebody: found by the proof (seed 20261123, run 181192).
        intend("dropped", Action.UPDATE_TABLE, "failed", "not_made")
        assert counted() == ["s$dropped", "s$gone", "s$left", "s$moved", "s$open", "s$remade"]
        # Denied is not given up. What is done there later shows whether the removal landed: it found nothing, or the table.
        intend("gone", Action.DEREGISTER_TABLE, "done", JournalEffect.ALREADY_GONE)
        intend("left", Action.DEREGISTER_TABLE, "failed", "15")
        intend("moved", Action.UPDATE_TABLE, "done")
        assert counted() == ["s$dropped", "s$gone", "s$left", "s$open", "s$remade"]

    def test_what_an_open_call_may_give_away_is_pending_whatever_the_call_is(self, index: Index) -> None:
        before = TableRecord("aws", ("s", "t"), "s3://x/old")
        after = replace(before, location="s3://x/new")
        for number, action in enumerate(("declare_table", "update_table", "recreate_table", "adopt", "deregister_table")):
            there = None if action == "declare_table" else before
            change = Change(
                Action(action), "aws", f"s$t{number}", "lake", "s$t", "", there, None if action == "deregister_table" else after
            )
            where = {"mirror": f"m{number}", "target_source": "aws", "target_path": f"s$t{number}"}
            with index.write() as connection:
                journal.insert_intent(connection, intent(f"pending{number}", action, **where, change=change.to_json()))
        with index.read() as connection:
            assert journal.list_pending_paths(connection, "aws", "s3://x/new") == {"s$t0", "s$t1", "s$t2", "s$t3"}
            assert journal.list_pending_paths(connection, "aws", "s3://x/old") == set()
            assert journal.list_pending_paths(connection, "other", "s3://x/new") == set()

    def test_an_open_direct_write_is_listed_and_its_location_is_pending(self, index: Index) -> None:
        request = WriteRequest("api", "aws", "register_table", ("s", "t"), (), {"location": "s3a://x/new/"})
        at_location = request.to_intent("1", "writer:a")
        without_location = WriteRequest("api", "aws", "declare_table", ("s", "u"), ()).to_intent("2", "writer:a")
        with index.write() as connection:
            journal.insert_intent(connection, at_location)
            journal.insert_intent(connection, without_location)
        with index.read() as connection:
            assert journal.list_open_intents(connection, NO_MIRROR) == [at_location, without_location]
            assert journal.list_pending_paths(connection, "aws", "s3://x/new") == {"s$t"}
            assert journal.list_pending_paths(connection, "aws", "s3://x/old") == set()

    def test_plans_keep_decisions(self, index: Index) -> None:
        plan = {"digest": "abc", "mirror": "m", "run_id": "r", "state": "held", "body": "{}"}
        with index.write() as connection:
            assert plans.save_plan(connection, **plan) == "held"
            plans.record_decision(connection, "abc", "approved", "ann")
            # Its approval has ended.
            assert plans.save_plan(connection, **plan) == "held"
            assert plans.save_plan(connection, **{**plan, "state": "approved"}) == "approved"
            plans.record_decision(connection, "abc", "applied", "ann")
            assert plans.save_plan(connection, **plan) == "held"
            assert plans.get_plan(connection, "ab").decided_by is None
            with pytest.raises(StateError, match="no plan has"):
                plans.get_plan(connection, "%")

    @pytest.mark.parametrize("is_ascii", [False, True])
    def test_the_body_of_the_newest_plan_is_read_only_if_it_has_the_object(self, index: Index, is_ascii: bool) -> None:
        keys = ("s$t", 's$quo"te', "größe$\\", "s$😀")
        for number, keys_of_plan in enumerate((("older",), keys)):
            body = json.dumps(
                {"changes": [{"target_path": key} for key in keys_of_plan], "refusals": []}, ensure_ascii=is_ascii
            )
            with index.write() as connection:
                plans.save_plan(connection, digest=f"{number}", mirror="m", run_id="r", state="held", body=body)
        with index.read() as connection:
            for key in (*keys, "s", "t", "older", "S$T", "s$t2"):
                found = plans.find_newest_plan(connection, "m", about=key)
                assert found is not None
                assert (found.record.digest, found.size) == ("1", len(body) if key in keys else 0)
            assert plans.find_newest_plan(connection, "other", about="s$t") is None

    def test_losses_and_the_revisions_of_the_last_accepted_plan(self, index: Index) -> None:
        rows: list[dict[str, Any]] = [
            {"tables": 4, "gone": 3},
            {"tables": 1},
            {"tables": 4, "moved": 2},
            {"went_back": "the log"},
        ]
        for number, lost in enumerate(rows, 1):
            fill(index, "lake", table("lake", "s", f"t{number}"))
            with index.write() as connection:
                connection.execute(update(t.revision).where(t.revision.c.number == number).values(**lost))
        plan = {"digest": "abc", "mirror": "m", "run_id": "r", "state": "approved"}
        change = {"origin_source": "lake", "target_source": "aws"}
        with index.write() as connection:
            facts = PlanFacts(connection)
            assert [(loss.revision, loss.gone, loss.moved) for loss in facts.losses("lake", 0)] == [
                (1, 3, 0),
                (3, 0, 2),
                (4, 0, 0),
            ]
            assert [loss.went_back for loss in facts.losses("lake", 3)] == ["the log"]
            assert (facts.losses("aws", 0), facts.accepted_revisions("m")) == ([], {})
            plans.save_plan(connection, **plan, body=json.dumps({"changes": [change], "origin_revision": 3}))
            assert facts.accepted_revisions("m") == {("lake", "origin"): 3, ("aws", "target"): 0}
            plans.record_decision(connection, "abc", "rejected", "ann")
            assert facts.accepted_revisions("m") == {}

    def test_runs(self, index: Index) -> None:
        run = runs.insert_run(index, "crawl", actor="ann")
        runs.set_progress(index, run, "half")
        runs.record_source_result(index, run, "lake", revision=1, state="ok")
        row_, sources, _ = runs.get_run(index, run.id)
        assert (row_.progress, sources[0].tables, runs.is_running(index, run.id)) == ("half", 0, True)
        runs.finish_run(index, run, "ok", summary={"tables": 1})
        runs.set_progress(index, run, "late")
        row_, _, _ = runs.get_run(index, run.id)
        assert (row_.progress, row_.summary, runs.is_running(index, run.id)) == (None, {"tables": 1}, False)

    def test_the_requests_of_actors_are_taken_in_turn(self, index: Index) -> None:
        with index.write() as connection:
            for number in range(3):
                requests.queue_request(connection, "crawl", {"sources": [f"s{number}"]}, actor="busy")
            for actor in ("schedule", "other"):
                requests.queue_request(connection, "crawl", {"sources": [actor]}, actor=actor)
            taken = []
            while queued := requests.list_queued(connection, requests.RUN_KINDS, limit=1):
                taken.append(queued[0].actor)
                requests.set_request_state(connection, queued[0].id, requests.DONE, run_id=f"0199f0c2a4{len(taken)}-0")
                if len(taken) == 4:
                    requests.queue_request(connection, "crawl", {"sources": ["late"]}, actor="other")
        assert taken == ["busy", "schedule", "other", "busy", "other", "busy"]

    def test_requests_and_schedules(self, index: Index) -> None:
        with index.write() as connection:
            first = requests.queue_request(connection, "crawl", {"sources": ["a"]}, actor="api")
            assert requests.queue_unless_pending(connection, "crawl", {"sources": ["a"]}, actor="schedule") is None
            second = requests.queue_unless_pending(connection, "crawl", {"sources": ["b"]}, actor="schedule")
            assert second is not None
            assert [r.id for r in requests.list_queued(connection, requests.RUN_KINDS)] == [first.id, second.id]
            assert requests.claim_request(connection, first.id)
            assert not requests.claim_request(connection, first.id)
            assert not requests.cancel_queued(connection, first.id)
            assert requests.cancel_queued(connection, second.id)
            requests.set_request_state(connection, first.id, requests.RUNNING, run_id="r1")
            assert (
                requests.find_request_of_run(connection, "r1")
                == requests.get_request(connection, first.id)
                == requests.list_running(connection)[0]
            )
            requests.set_request_state(connection, first.id, requests.DONE)
            assert requests.get_request(connection, first.id).run_id == "r1"
            job_states.set_paused(connection, "crawl:a", True)
            job_states.record_job_start(connection, "crawl:a", "r1")
            assert job_states.list_job_states(connection)["crawl:a"].paused
            assert job_states.list_job_states(connection)["crawl:a"].last_run_id == "r1"

    def test_two_processes_may_record_a_new_job_at_once(self, index: Index) -> None:
        began = threading.Event()

        def start() -> None:
            began.set()
            with index.write() as connection:
                job_states.record_job_start(connection, "crawl:a", "r1")

        with ThreadPoolExecutor(1) as other:
            with index.write() as connection:
                job_states.set_paused(connection, "crawl:a", True)
                started = other.submit(start)
                assert began.wait(10)
                time.sleep(0.3)
            started.result(30)
        with index.read() as connection:
            state = job_states.list_job_states(connection)["crawl:a"]
        assert (state.paused, state.last_run_id) == (True, "r1")
