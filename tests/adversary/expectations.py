"""What each cell of the lie matrix must show, as rules over lie, phase and connector, and the exceptions with their reasons."""

from __future__ import annotations

from tests.adversary.worlds import World

# The code of a failure, where it is the same in every phase and protocol.
CODES = {
    "refuse": 17, "reset": 17, "hang": 17, "drip forever": 17, "cut": 17, "wrong type": 18, "missing field": 18, "{}": 18, "[]": 18,
    "html": 18, "bare 404": 18, "endless": 18, "endless, fresh tokens": 18, "401": 16, "403": 15, "429": 21, "429, retry": 21,
    "500": 18, "502": 17, "503": 17, "503, retry": 17, "503 once": 17, "lost": 17, "lost once": 17, "expiry": 16, "elsewhere": 1,
}  # fmt: skip
#: lies after which the server has what was asked for, though the client was told nothing
_TOOK_EFFECT = {"reset", "cut", "lost", "lost once"}
#: lies about a single response that a read asks for again
_ONCE = {"503 once", "lost once"}
#: believable listings. A table that they leave out is missed once; a direct look finds it.
_BELIEVED = {
    "stale": "complete, 3 read", "duplicated": "complete, 3 read", "other case": "complete, 3 read",
    "empty": "complete, 0 read, 3 missed once", "short": "complete, 2 read, 1 missed once",
}  # fmt: skip
_DONE = {"create": "there", "alter": "altered", "drop": "absent"}
_UNDONE = {"create": "absent", "alter": "as before", "drop": "there"}
# What concerns a whole server ends the crawl of a namespace; anything else concerns one table.
_WIDE = (16, 17, 21)


def code_of(world: World, lie: str) -> int:
    """The code with which a lie fails."""
    if world.name == "glue":
        # The Glue spec's 16 stands for denied access, and AWS's 5xx may be tried again.
        return {"403": 16, "500": 17}.get(lie, CODES[lie])
    if world.name == "rest" and lie == "bare 404":
        # A route that is missing.
        return 0
    if speaks_thrift(world) and lie == "html":
        return 17
    return CODES[lie]


def expected(world: World, lie: str, phase: str) -> str:
    """The text of a cell, by rule; ``EXCEPTIONS`` first."""
    special = next(
        (text for (name, *key), text in EXCEPTIONS.items() if key == [lie, phase] and world.name.startswith(name)), None
    )
    if special is not None:
        return special
    if phase == "list":
        if lie in _BELIEVED:
            return _BELIEVED[lie]
        return "complete, 3 read" if lie == "drip" or lie in _ONCE else f"failed {code_of(world, lie)}, 0 read"
    if lie == "drip" or (lie in _ONCE and phase in ("describe", "observe")):
        return {"describe": "complete, 3 read", "observe": "there"}.get(phase) or f"ok, {_DONE[phase]}"
    if lie == "not found":
        return "absent" if phase == "observe" else "complete, detail failed 4, 0 of 3 read"
    if phase == "observe":
        return f"code {code_of(world, lie)}"
    if phase == "describe":
        code = code_of(world, lie)
        narrow = world.name == "rest" or code not in _WIDE
        return f"complete, detail failed {code}, 0 of 3 read" if narrow else f"failed {code}, 0 read"
    if lie == "repeated":
        return {"create": "code 5, there", "alter": "code 14, altered", "drop": "code 4, absent"}[phase]
    return f"code {code_of(world, lie)}, {(_DONE if lie in _TOOK_EFFECT else _UNDONE)[phase]}"


_NO_WORDS = "complete, detail failed 4, 0 of 3 read, 3 missed once"
#: (connector's beginning, lie, phase): what differs, each with its reason
EXCEPTIONS: dict[tuple[str, str, str], str] = {
    # Databricks leaves out an empty list.
    ("unity", "{}", "list"): "skipped, 0 read",
    # Names are told apart by case there: other names are read, not found, and no proof that the old ones are gone.
    ("unity", "other case", "list"): "complete, 3 read, 3 missed once",
    ("polaris", "other case", "list"): _NO_WORDS,
    ("iceberg", "other case", "list"): _NO_WORDS,
    ("rest", "other case", "list"): _NO_WORDS,
    # Names are unique in a database, so a listing with one twice is broken.
    ("glue", "duplicated", "list"): "failed 18, 0 read",
    # botocore takes a cut body for one that is no JSON; the write itself took place and was read back.
    ("glue", "cut", "list"): "failed 18, 0 read",
    ("glue", "cut", "observe"): "code 18",
    ("glue", "cut", "create"): "ok, there",
    ("glue", "cut", "alter"): "ok, altered",
    ("glue", "cut", "drop"): "ok, absent",
    # Another server has no such namespace.
    ("unity", "elsewhere", "list"): "failed 1, not found, 0 read",
    ("polaris", "elsewhere", "list"): "failed 1, not found, 0 read",
    ("iceberg", "elsewhere", "list"): "failed 1, not found, 0 read",
    ("rest", "elsewhere", "list"): "failed 1, not found, 0 read",
    ("unity", "elsewhere", "observe"): "absent",
    ("polaris", "elsewhere", "observe"): "absent",
    ("iceberg", "elsewhere", "observe"): "absent",
    ("rest", "elsewhere", "observe"): "absent",
    ("polaris", "elsewhere", "describe"): "complete, detail failed 4, 0 of 3 read",
    ("polaris", "elsewhere", "drop"): "code 4, there",
    # The other one creates the table without its namespace, as Iceberg's server does; what was declared is read back.
    ("iceberg", "elsewhere", "create"): "code 4, absent",
    ("iceberg", "elsewhere", "describe"): "complete, detail failed 4, 0 of 3 read",
    ("iceberg", "elsewhere", "alter"): "code 4, as before",
    ("iceberg", "elsewhere", "drop"): "code 4, there",
    ("rest", "elsewhere", "drop"): "code 4, there",
    # 204 has no body that could be cut.
    ("polaris", "reset", "drop"): "ok, absent",
    ("polaris", "cut", "drop"): "ok, absent",
    ("iceberg", "reset", "drop"): "ok, absent",
    ("iceberg", "cut", "drop"): "ok, absent",
    # A commit requires the UUID of the table, which the same commit does not change.
    ("iceberg", "repeated", "alter"): "ok, altered",
    # The response to RegisterTable is not read; what was declared is, and a first spelling of the location is refused.
    ("rest", "reset", "create"): "code 17, absent",
    ("rest", "cut", "create"): "code 17, absent",
    ("rest", "lost", "create"): "code 17, absent",
    ("rest", "lost once", "create"): "code 17, absent",
    ("rest", "{}", "drop"): "code 0, there",
    ("rest", "[]", "drop"): "code 0, there",
    ("rest", "html", "drop"): "code 0, there",
    # A write's result has no fields that could be left out.
    ("hive", "{}", "create"): "ok, there",
    ("hive", "{}", "alter"): "ok, altered",
    ("hive", "{}", "drop"): "ok, absent",
    # Asked for singly, the tables of a batch that cannot be read answer.
    ("hive", "missing field", "describe"): "complete, 3 read",
    # The first half of a declaration, a view that is no table: recovery finishes or removes it.
    ("hive", "reset", "create"): "code 17, absent",
    ("hive", "cut", "create"): "code 17, absent",
    ("hive", "lost", "create"): "code 17, absent",
    ("hive", "lost once", "create"): "code 17, absent",
    ("hive", "repeated", "create"): "ok, there",
    # 3.1.3 accepts the expected parameter and does not compare it.
    ("hive3", "repeated", "alter"): "ok, altered",
    # 4.0.1 on Derby cannot compare, and says so: the first call changes nothing, and the next one, without a parameter, alters.
    ("hive4", "reset", "alter"): "code 17, as before",
    ("hive4", "cut", "alter"): "code 17, as before",
    ("hive4", "lost", "alter"): "code 17, as before",
    ("hive4", "lost once", "alter"): "code 17, as before",
    ("hive4", "repeated", "alter"): "ok, altered",
    # The same field of a result is another exception in each method.
    ("hive", "500", "create"): "code 5, absent",
    ("hive", "500", "alter"): "code 13, as before",
    ("hive", "500", "drop"): "code 4, there",
}


def speaks_thrift(world: World) -> bool:
    return world.name.startswith("hive")
