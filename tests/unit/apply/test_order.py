"""Dependencies between changes: which change waits for which other, and that no other change waits."""

from __future__ import annotations

from federator.apply.ordering import group_changes, rank_groups
from federator.model import NamespaceRecord, TableRecord, parse_path_key
from federator.planning.changes import Action, Change


def table(key: str, location: str) -> TableRecord:
    return TableRecord("b", parse_path_key(key), location)


def declare(key: str, location: str, pair: str | None = None) -> Change:
    return Change(Action.DECLARE_TABLE, "b", key, "a", key, "new", after=table(key, location), pair=pair)


def remove(key: str, location: str, pair: str | None = None) -> Change:
    return Change(Action.DEREGISTER_TABLE, "b", key, "a", key, "gone", before=table(key, location), pair=pair)


def namespace(action: Action, key: str) -> Change:
    return Change(action, "b", key, "a", key, "holds", namespace=NamespaceRecord("b", parse_path_key(key)))


def ranked(*changes: Change) -> list[list[list[str]]]:
    return [
        [[f"{c.action.value} {c.target_path}" for _, c in unit.steps] for unit in rank]
        for rank in rank_groups(group_changes(changes))
    ]


def test_independent_changes_may_run_in_parallel() -> None:
    assert ranked(remove("s$a", "s3://x/a"), declare("s$b", "s3://x/b"), declare("s$c", "s3://x/c")) == [
        [["deregister_table s$a"], ["declare_table s$b"], ["declare_table s$c"]]
    ]


def test_a_location_is_freed_before_it_is_taken() -> None:
    assert ranked(remove("s$a", "s3://x/a"), declare("s$b", "s3://x/a")) == [
        [["deregister_table s$a"]],
        [["declare_table s$b"]],
    ]
    moved = Change(
        Action.UPDATE_TABLE, "b", "s$m", "a", "s$m", "moved", before=table("s$m", "s3://x/m"), after=table("s$m", "s3://x/n")
    )
    assert ranked(moved, declare("s$n", "s3://x/m")) == [[["update_table s$m"]], [["declare_table s$n"]]]


def test_namespaces_are_created_before_their_content_and_dropped_after_it() -> None:
    made = [namespace(Action.CREATE_NAMESPACE, key) for key in ("n", "n$m")]
    assert ranked(*made, declare("n$m$t", "s3://x/t")) == [
        [["create_namespace n"]],
        [["create_namespace n$m"]],
        [["declare_table n$m$t"]],
    ]
    dropped = [namespace(Action.DROP_NAMESPACE, key) for key in ("n$m", "n")]
    assert ranked(remove("n$m$t", "s3://x/t"), *dropped) == [
        [["deregister_table n$m$t"]],
        [["drop_namespace n$m"]],
        [["drop_namespace n"]],
    ]


def test_a_rename_pair_is_one_unit_and_a_chain_begins_at_its_end() -> None:
    first = (remove("s$a", "s3://x/1", "s$a -> s$b"), declare("s$b", "s3://x/1", "s$a -> s$b"))
    second = (remove("s$b", "s3://x/2", "s$b -> s$c"), declare("s$c", "s3://x/2", "s$b -> s$c"))
    assert ranked(*first, *second) == [
        [["deregister_table s$b", "declare_table s$c"]],
        [["deregister_table s$a", "declare_table s$b"]],
    ]
    assert [[number for number, _ in unit.steps] for unit in group_changes([*first, *second])] == [[2, 3], [0, 1]]


def test_a_ring_of_renames_keeps_the_plans_order() -> None:
    ring = (
        remove("s$a", "s3://x/1", "s$a -> s$b"), declare("s$b", "s3://x/1", "s$a -> s$b"),
        remove("s$b", "s3://x/2", "s$b -> s$a"), declare("s$a", "s3://x/2", "s$b -> s$a"),
    )  # fmt: skip
    assert len(rank_groups(group_changes(ring))) == 2
    assert sorted(number for unit in group_changes(ring) for number, _ in unit.steps) == [0, 1, 2, 3]
