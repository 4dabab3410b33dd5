"""Differences that are known: operations of a client that do not pass on a server, with their reason.

``python -m tests.interop.differences`` prints them as the table of docs/reference/api.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.interop.rest_clients import CLIENTS, Outcome
from tests.interop.servers import CATALOGS, REFERENCE


@dataclass(frozen=True)
class Difference:
    """``operations`` of ``clients`` that fail on ``servers``, with a message that contains ``message``."""

    clients: tuple[str, ...]
    servers: tuple[str, ...]
    operations: tuple[str, ...]
    message: str
    reason: str

    def explains(self, outcome: Outcome) -> bool:
        """Return whether the outcome is this difference."""
        return (
            outcome.client in self.clients
            and outcome.server in self.servers
            and outcome.operation in self.operations
            and self.message in outcome.text
        )

    def cells(self) -> set[tuple[str, str, str]]:
        """Return the client, server and operation of each outcome that this difference must explain."""
        return {(client, server, name) for client in self.clients for server in self.servers for name in self.operations}


_ALL = (*CATALOGS, REFERENCE)
_HIVE = ("hive2", "hive3")
_BODY = "request body names"
_JAVA_OPERATIONS = (
    "create a namespace", "list the namespace", "describe the namespace", "declare a table", "list tables", "describe the table",
    "test that the table exists", "refuse an existing name (409, code 5)", "refuse a missing table (404, code 4)",
    "refuse to drop a namespace with a table (409, code 3)", "rename the table", "declare, list and deregister a name with a space",
    "deregister the table", "drop the namespace", "refuse a missing namespace (404, code 1)",
)  # fmt: skip

DIFFERENCES = (
    Difference(
        ("pylance",), _HIVE,
        ("write a name with a space", "insert into a name with a space at the server", "create a name with a space at the server"),
        "", "Hive does not allow a space in a table's name.",
    ),
    Difference(("ray",), _HIVE, ("write and read a name with a space",), "", "Hive does not allow a space in a table's name."),
    Difference(
        ("spark",), _HIVE, ("create, insert and read a name with a space", "drop a name with a space"),
        "", "Hive does not allow a space in a table's name.",
    ),
    Difference(
        ("java",), _HIVE, ("declare, list and deregister a name with a space",),
        "is not a valid name", "Hive does not allow a space in a table's name.",
    ),
    Difference(
        ("java",), ("dir", "glue", "rest"), ("rename the table",),
        "406", "These catalogs cannot rename a table: code 0, Unsupported.",
    ),
    Difference(
        ("lancedb",), _ALL, ("create a name with a space", "drop a name with a space"),
        "", "lancedb itself refuses to create a table whose name has a space. It opens one that another client created.",
    ),
    Difference(
        ("lancedb-remote",), _ALL, ("create a name with a space, add rows", "drop a name with a space"),
        "Invalid table name", "lancedb itself refuses names with a space.",
    ),
    Difference(
        ("pylance",), (REFERENCE,), ("write a name with a space", "create a name with a space at the server"),
        _BODY, "The RestAdapter reads the space in pylance's own route as a plus.",
    ),
    Difference(
        ("pylance",), (REFERENCE,), ("insert into a name with a space at the server",),
        "two+words", "The RestAdapter reads the space in pylance's own route as a plus.",
    ),
    Difference(
        ("pylance",), (REFERENCE,), ("deregister and register",),
        "Absolute URIs are not allowed", "The RestAdapter registers only locations relative to its root; here they are absolute.",
    ),
    Difference(
        ("ray",), (REFERENCE,), ("write and read a name with a space",),
        _BODY, "The RestAdapter reads the space in the client's route as a plus.",
    ),
    Difference(
        ("spark",), (REFERENCE,), ("create, insert and read a name with a space", "drop a name with a space"),
        "", "The RestAdapter reads the space in the client's route as a plus.",
    ),
    Difference(
        ("lancedb-remote",), (REFERENCE,), ("add rows and count", "search"),
        "missing field `version`", "lancedb requires the table's version in DescribeTable, and sends vectors as lists, as LanceDB's "
        "own service accepts them. This service does, too; the RestAdapter does not.",
    ),
    Difference(
        ("lancedb-remote",), (REFERENCE,), ("delete rows",),
        "2 instead of 4", "Without the rows that could not be added.",
    ),
    Difference(
        ("lancedb-remote",), (REFERENCE,), ("refuse a missing table",),
        "expected request with `content-type", "The RestAdapter requires a body of JSON, which lancedb does not send.",
    ),
    Difference(
        ("java",), (REFERENCE,), _JAVA_OPERATIONS,
        "", "The Java client sends an id that is not set as `[]`, which the RestAdapter compares with the route; here it is no id.",
    ),
)  # fmt: skip


def to_markdown() -> str:
    """Return the table of docs/reference/api.md."""
    lines = ["| client | server | operations | reason |", "| --- | --- | --- | --- |"]
    for difference in DIFFERENCES:
        clients = ", ".join(CLIENTS[name].title for name in difference.clients)
        servers = "all" if difference.servers == _ALL else ", ".join(map(_server_title, difference.servers))
        operations = "all" if difference.operations == _JAVA_OPERATIONS else "; ".join(difference.operations)
        lines.append(f"| {clients} | {servers} | {operations} | {difference.reason} |")
    return "\n".join(lines)


def _server_title(name: str) -> str:
    return "RestAdapter" if name == REFERENCE else f"`{name}`"


if __name__ == "__main__":
    print(to_markdown())
