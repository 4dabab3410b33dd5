"""Differences that are known: operations of a client that do not pass on a server, with their reason.

``python -m tests.interop.differences`` prints them as the table of docs/reference/api.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.interop.rest_clients import CLIENTS, Outcome
from tests.interop.servers import CATALOGS, REFERENCE


@dataclass(frozen=True)
class Difference:
    """``operations`` of ``clients`` that fail on ``servers``, with a message that contains ``message``.

    ``message`` is a pattern: ``?`` is any character, ``*`` any text.
    """

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
            and fnmatchcase(outcome.text, f"*{self.message.replace('[', '[[]')}*")
        )

    def cells(self) -> set[tuple[str, str, str]]:
        """Return the client, server and operation of each outcome that this difference must explain."""
        return {(client, server, name) for client in self.clients for server in self.servers for name in self.operations}


_ALL = (*CATALOGS, REFERENCE)
_HIVE = ("hive2", "hive3")
_BODY = 'InvalidInputError: Invalid input: request body names ["*", "* words"], the route names ["*", "*+words"]'
_NO_SPACE = "'two words' is not a valid name in this catalog"
_LANCEDB_RULE = 'Invalid table name ("two words")'

DIFFERENCES = (
    Difference(
        ("pylance",), _HIVE, ("write a name with a space",),
        f"InvalidInputError: Invalid input: hive?: {_NO_SPACE}", "Hive does not allow a space in a table's name.",
    ),
    Difference(
        ("pylance",), _HIVE, ("create a name with a space at the server",),
        "InvalidInputError: Invalid input: hive?: 'sent words' is not a valid name in this catalog",
        "Hive does not allow a space in a table's name.",
    ),
    Difference(
        ("pylance",), _HIVE, ("insert into a name with a space at the server",),
        "TableNotFoundError: Table not found: there is no table hive*$two words", "The table could not be created.",
    ),
    Difference(
        ("ray",), _HIVE, ("write and read a name with a space",),
        f"InvalidInputError: Invalid input: hive?: {_NO_SPACE}", "Hive does not allow a space in a table's name.",
    ),
    Difference(
        ("spark",), _HIVE, ("create, insert and read a name with a space",),
        f'status=400 Bad Request, content={{"error":"hive?: {_NO_SPACE}","code":13', "Hive does not allow a space in a table's name.",
    ),
    Difference(
        ("spark",), _HIVE, ("drop a name with a space",),
        "[TABLE_OR_VIEW_NOT_FOUND]", "The table could not be created.",
    ),
    Difference(
        ("java",), _HIVE, ("declare, list and deregister a name with a space",),
        f"ApiException{{code=400,*{_NO_SPACE}*\"code\":*13", "Hive does not allow a space in a table's name.",
    ),
    Difference(
        ("java",), ("dir", "glue", "rest"), ("rename the table",),
        'ApiException{code=406,*"code":*0', "These catalogs cannot rename a table: code 0, Unsupported.",
    ),
    Difference(
        ("java",), (REFERENCE,), ("rename the table",),
        'ApiException{code=500,*Not supported: rename_table not implemented*"code":*18',
        "The RestAdapter cannot rename a table: status 500, code 18.",
    ),
    Difference(
        ("lancedb",), _ALL, ("create a name with a space",),
        f"ValueError: {_LANCEDB_RULE}",
        "lancedb itself refuses to create a table whose name has a space. It opens one that another client created.",
    ),
    Difference(
        ("lancedb",), _ALL, ("drop a name with a space",),
        "ValueError: Table 'two words' was not found", "The table could not be created.",
    ),
    Difference(
        ("lancedb-remote",), _ALL, ("create a name with a space, add rows", "drop a name with a space"),
        f"ValueError: {_LANCEDB_RULE}", "lancedb itself refuses names with a space.",
    ),
    Difference(
        ("pylance",), (REFERENCE,), ("write a name with a space", "create a name with a space at the server"),
        _BODY, "The RestAdapter reads the space in pylance's own route as a plus.",
    ),
    Difference(
        ("pylance",), (REFERENCE,), ("insert into a name with a space at the server",),
        "TableNotFoundError: Table not found: table id '*$two+words'",
        "The RestAdapter reads the space in pylance's own route as a plus.",
    ),
    Difference(
        ("pylance",), (REFERENCE,), ("deregister and register",),
        "InvalidInputError: Invalid input: Absolute URIs are not allowed for register_table",
        "The RestAdapter registers only locations relative to its root; here they are absolute.",
    ),
    Difference(
        ("ray",), (REFERENCE,), ("write and read a name with a space",),
        _BODY, "The RestAdapter reads the space in the client's route as a plus.",
    ),
    Difference(
        ("spark",), (REFERENCE,), ("create, insert and read a name with a space",),
        r'status=400 Bad Request, content={"error":"request body names [\"*\", \"two words\"], the route names [\"*\", \"two+words\"]',
        "The RestAdapter reads the space in the client's route as a plus.",
    ),
    Difference(
        ("spark",), (REFERENCE,), ("drop a name with a space",),
        "[TABLE_OR_VIEW_NOT_FOUND]", "The table could not be created.",
    ),
    Difference(
        ("lancedb-remote",), (REFERENCE,), ("add rows and count", "search"),
        "HttpError:*Failed to parse table description: missing field `version`",
        "lancedb requires the table's version in DescribeTable, and sends vectors as lists, as LanceDB's "
        "own service accepts them. This service does, too; the RestAdapter does not.",
    ),
    Difference(
        ("lancedb-remote",), (REFERENCE,), ("delete rows",),
        "AssertionError: 2 instead of 4", "Without the rows that could not be added.",
    ),
    Difference(
        ("lancedb-remote",), (REFERENCE,), ("refuse a missing table",),
        '400 bad request: {"error":"expected request with `content-type: application/json`","code":13}',
        "The RestAdapter requires a body of JSON, which lancedb does not send.",
    ),
)  # fmt: skip


def to_markdown() -> str:
    """Return the table of docs/reference/api.md."""
    lines = ["| client | server | operations | message | reason |", "| --- | --- | --- | --- | --- |"]
    for difference in DIFFERENCES:
        clients = ", ".join(CLIENTS[name].title for name in difference.clients)
        servers = "all" if difference.servers == _ALL else ", ".join(map(_server_title, difference.servers))
        operations = "; ".join(difference.operations)
        lines.append(f"| {clients} | {servers} | {operations} | `` {difference.message} `` | {difference.reason} |")
    return "\n".join(lines)


def _server_title(name: str) -> str:
    return "RestAdapter" if name == REFERENCE else f"`{name}`"


if __name__ == "__main__":
    print(to_markdown())
