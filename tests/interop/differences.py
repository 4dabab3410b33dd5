"""Differences that are known: operations of a client that do not pass on a server, with their reason.

``python -m tests.interop.differences`` prints them as the table of docs/reference/client-differences.md.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from tests.interop.rest_clients import CLIENTS, Outcome
from tests.interop.servers import CATALOGS, REFERENCE

#: what differs from run to run, by what stands for it
_MASKS = {
    "NAMESPACE": r"(?:\w+(?:\$|%24))*ns_[0-9a-f]{8}",
    "ID_NAMESPACE": r"[0-9a-f]{8}_NAMESPACE",
    "HEADERS": r"(?<=responseHeaders=)\{.*?\}(?=, responseBody=)",
    "UUID": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "DIRECTORY": r"/tmp/interop-[^/]+",
    # lancedb shares a description that is being read with its cache. While the cache still holds the error, too, the caller gets the
    # error's text as another class.
    "HttpError: Http": r"^RuntimeError: Runtime error: Http",
}


@dataclass(frozen=True)
class Difference:
    """``operations`` of ``clients`` that fail on ``servers``, all with one ``message``: see ``mask``."""

    clients: tuple[str, ...]
    servers: tuple[str, ...]
    operations: tuple[str, ...]
    message: str
    reason: str

    def explains(self, outcome: Outcome) -> bool:
        """Return whether the outcome is this difference."""
        return self._covers(outcome) and mask(outcome) == self.message

    def _covers(self, outcome: Outcome) -> bool:
        return outcome.client in self.clients and outcome.server in self.servers and outcome.operation in self.operations

    def cells(self) -> set[tuple[str, str, str]]:
        """Return the client, server and operation of each outcome that this difference must explain."""
        return {(client, server, name) for client in self.clients for server in self.servers for name in self.operations}


def mask(outcome: Outcome) -> str:
    """Return the client's message without what differs from run to run. ``SERVER`` is the name of the server where it is a word."""
    text = outcome.text
    for word, pattern in _MASKS.items():
        text = re.sub(pattern, word, text)
    return re.sub(rf"(?<![\w.]){outcome.server}(?=[:`])", "SERVER", text)


_ALL = (*CATALOGS, REFERENCE)
_HIVE = ("hive2", "hive3")
_RUST_REST = "/workspace/rust/lance-namespace-impls/src/rest.rs:560:17"
_RENAME_RS = (
    "Not supported: rename_table not implemented, /home/runner/work/lance/lance/rust/lance-namespace/src/namespace.rs:292:13"
)
_NO_SPACE = "SERVER: 'two words' is not a valid name in this catalog"
_NO_RENAME = "SERVER: this catalog cannot rename tables"
_NAME_RULE = '"code":13,"detail":"names match [A-Za-z0-9_]+ and have at most 256 characters"'
_BODY = 'request body names ["NAMESPACE", "{0} words"], the route names ["NAMESPACE", "{0}+words"]'
_LANCEDB_RULE = (
    'ValueError: Invalid table name ("two words"): it may contain only alphanumeric characters, underscores, '
    "hyphens and periods"
)
_NO_TABLE = (
    "AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] The table or view `SERVER`.`NAMESPACE`.`two words` cannot be found. Verify the "
    "spelling and correctness of the schema and catalog. If you did not qualify the name with a schema, verify the current_schema() "
    "output, or qualify the name with the correct schema and catalog. To tolerate the error on drop use DROP VIEW IF EXISTS or DROP "
    "TABLE IF EXISTS."
)


def _spark(content: str) -> str:
    return (
        "Py4JJavaError: java.lang.RuntimeException: Namespace operation failed: Namespace error: Response error: status=400 Bad "
        f"Request, content={content}, {_RUST_REST}"
    )


def _java(status: int, body: str) -> str:
    return f"Py4JJavaError: ApiException{{code={status}, responseHeaders=HEADERS, responseBody='{body}'}}"


def _renamed(error: str) -> str:
    return _java(406, f'{{"error":"{error}","code":0,"detail":"{error}","instance":"/v1/table/NAMESPACE%24orders/rename"}}')


_NODE = ("lancedb-node", "lancedb-node-remote")
_NODE_RS = "/usr/local/cargo/registry/src/index.crates.io-1949cf8c6b5b557f/lance-namespace-impls-12.0.0/src/rest.rs:567:74"


def _node(error: str) -> str:
    causes = (f"Namespace error: {error}, {_NODE_RS}", f"Namespace error: {error}, {_NODE_RS}", error)
    return "Error: lance error: " + " Caused by: ".join(causes)


_DUCKDB_RS = "/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f"


def _duckdb_open(error: str) -> str:
    return (
        "IOException: IO Error: Failed to open Lance dataset: (Lance error: namespace describe_table: Namespace error: Namespace "
        f"error: Table not found: {error}, {_DUCKDB_RS}/lance-namespace-impls-6.0.0/src/rest.rs:560:74, "
        f"{_DUCKDB_RS}/lance-6.0.0/src/dataset/builder.rs:142:26 (code=22))"
    )


_NO_NAMESPACE = "DuckDB sends a table's name without its namespace."
DIFFERENCES = (
    Difference(
        ("lancedb-node",), tuple(CATALOGS), ("list tables after a name",),
        _node("Invalid input: page_token is malformed"),
        "lancedb sends the name as the page token. Tokens of this service are its own, so that a wrong one leaves out no table.",
    ),
    Difference(
        _NODE, _HIVE, ("read and drop a name with a space",),
        f'AssertionError: {{"error":"{_NO_SPACE}",{_NAME_RULE},"instance":"/v1/table/NAMESPACE%24two%20words/create"}}',
        "Hive does not allow a space in a table's name.",
    ),
    Difference(
        ("lancedb-node",), (REFERENCE,), ("create, describe and drop a namespace by modes",),
        _node("Namespace already exists: NAMESPACE"), "The RestAdapter creates a namespace in every mode.",
    ),
    Difference(
        ("lancedb-node",), (REFERENCE,), ("refuse a wrong key",),
        "AssertionError: Missing expected rejection.", "The RestAdapter has no keys.",
    ),
    Difference(
        ("lancedb-node",), (REFERENCE,), ("read and drop a name with a space",),
        f"Error: Runtime error: Namespace error: Namespace error: Invalid input: {_BODY.format('two')}, {_NODE_RS}",
        "The RestAdapter reads the space in the client's route as a plus.",
    ),
    Difference(
        ("pylance",), _HIVE, ("write a name with a space",),
        f"InvalidInputError: Invalid input: {_NO_SPACE}", "Hive does not allow a space in a table's name.",
    ),
    Difference(
        ("pylance",), _HIVE, ("create a name with a space at the server",),
        "InvalidInputError: Invalid input: SERVER: 'sent words' is not a valid name in this catalog",
        "Hive does not allow a space in a table's name.",
    ),
    Difference(
        ("pylance",), _HIVE, ("insert into a name with a space at the server",),
        "TableNotFoundError: Table not found: there is no table NAMESPACE$two words", "The table could not be created.",
    ),
    Difference(
        ("duckdb",), tuple(CATALOGS), ("read an attached table",),
        _duckdb_open("there is no table orders"), _NO_NAMESPACE,
    ),
    Difference(
        ("duckdb",), tuple(CATALOGS), ("create an attached table",),
        "IOException: IO Error: Failed to create Lance table via namespace: namespace declare_table: Namespace error: Unsupported: "
        f"created is not in a catalog and cannot be changed, {_DUCKDB_RS}/lance-namespace-impls-6.0.0/src/rest.rs:560:74 (code=50)",
        _NO_NAMESPACE,
    ),
    Difference(
        ("duckdb",), (REFERENCE,), ("read an attached table",),
        _duckdb_open("table id 'orders'"), _NO_NAMESPACE,
    ),
    Difference(
        ("duckdb",), (REFERENCE,), ("create an attached table",),
        "HTTPError: HTTP Error 404: Not Found", f"{_NO_NAMESPACE} The RestAdapter creates it in the root.",
    ),
    Difference(
        ("ray", "daft"), _HIVE, ("write and read a name with a space",),
        f"InvalidInputError: Invalid input: {_NO_SPACE}", "Hive does not allow a space in a table's name.",
    ),
    Difference(
        ("spark",), _HIVE, ("create, insert and read a name with a space",),
        _spark(f'{{"error":"{_NO_SPACE}",{_NAME_RULE},"instance":"/v1/table/NAMESPACE%24two+words/declare"}}'),
        "Hive does not allow a space in a table's name.",
    ),
    Difference(
        ("spark",), _HIVE, ("drop a name with a space",),
        _NO_TABLE, "The table could not be created.",
    ),
    Difference(
        ("java",), _HIVE, ("declare, list and deregister a name with a space",),
        _java(400, f'{{"error":"{_NO_SPACE}",{_NAME_RULE},"instance":"/v1/table/NAMESPACE%24two%20words/declare"}}'),
        "Hive does not allow a space in a table's name.",
    ),
    Difference(
        ("java",), ("dir", "glue"), ("rename the table",),
        _renamed(_NO_RENAME), "These catalogs cannot rename a table: code 0, Unsupported.",
    ),
    Difference(
        ("java",), ("rest",), ("rename the table",),
        _renamed(f"SERVER: renaming the table NAMESPACE$orders: {_RENAME_RS} (HTTP 500)"),
        "The RestAdapter behind this source cannot rename a table: code 0, Unsupported.",
    ),
    Difference(
        ("java",), (REFERENCE,), ("rename the table",),
        _java(500, f'{{"error":"{_RENAME_RS}","code":18}}'),
        "The RestAdapter cannot rename a table: status 500, code 18.",
    ),
    Difference(
        ("lancedb",), _ALL, ("create a name with a space",),
        _LANCEDB_RULE,
        "lancedb itself refuses to create a table whose name has a space. It opens one that another client created.",
    ),
    Difference(
        ("lancedb",), _ALL, ("drop a name with a space",),
        "ValueError: Table 'two words' was not found", "The table could not be created.",
    ),
    Difference(
        ("lancedb-remote",), _ALL, ("create a name with a space, add rows", "drop a name with a space"),
        _LANCEDB_RULE, "lancedb itself refuses names with a space.",
    ),
    Difference(
        ("pylance",), (REFERENCE,), ("write a name with a space",),
        f"InvalidInputError: Invalid input: {_BODY.format('two')}",
        "The RestAdapter reads the space in pylance's own route as a plus.",
    ),
    Difference(
        ("pylance",), (REFERENCE,), ("create a name with a space at the server",),
        f"InvalidInputError: Invalid input: {_BODY.format('sent')}",
        "The RestAdapter reads the space in pylance's own route as a plus.",
    ),
    Difference(
        ("pylance",), (REFERENCE,), ("insert into a name with a space at the server",),
        "TableNotFoundError: Table not found: table id 'NAMESPACE$two+words'",
        "The RestAdapter reads the space in pylance's own route as a plus.",
    ),
    Difference(
        ("pylance",), (REFERENCE,), ("deregister and register",),
        "InvalidInputError: Invalid input: Absolute URIs are not allowed for register_table. Location must be a relative path within "
        "the root directory: file://DIRECTORY/servers/reference/ID_NAMESPACE$orders",
        "The RestAdapter registers only locations relative to its root; here they are absolute.",
    ),
    Difference(
        ("ray", "daft"), (REFERENCE,), ("write and read a name with a space",),
        f"InvalidInputError: Invalid input: {_BODY.format('two')}",
        "The RestAdapter reads the space in the client's route as a plus.",
    ),
    Difference(
        ("spark",), (REFERENCE,), ("create, insert and read a name with a space",),
        _spark(json.dumps({"error": _BODY.format("two"), "code": 13}, separators=(",", ":"))),
        "The RestAdapter reads the space in the client's route as a plus.",
    ),
    Difference(
        ("spark",), (REFERENCE,), ("drop a name with a space",),
        _NO_TABLE, "The table could not be created.",
    ),
    Difference(
        ("lancedb-remote",), (REFERENCE,), ("add rows and count", "search", "add columns"),
        "HttpError: Http error: (request_id=UUID) Failed to parse table description: missing field `version` at line 1 column 223",
        "lancedb requires the table's version in DescribeTable, and sends vectors as lists, as LanceDB's "
        "own service accepts them. This service does, too; the RestAdapter does not.",
    ),
    Difference(
        ("lancedb-remote",), (REFERENCE,), ("delete rows",),
        "AssertionError: 2 instead of 4", "Without the rows that could not be added.",
    ),
    Difference(
        ("lancedb-remote",), (REFERENCE,), ("count updated and deleted rows",),
        "AssertionError: 0 instead of 2", "The RestAdapter counts them in the protocol's own fields only, which lancedb does not read.",
    ),
    Difference(
        ("lancedb-remote",), (REFERENCE,), ("tag a version, list tags",),
        "HttpError: Http error: (request_id=UUID) Failed to parse tags list: missing field `version` at line 1 column 50",
        "lancedb reads the tags as LanceDB's own service lists them. This service does so for its clients; the RestAdapter does not.",
    ),
    Difference(
        ("lancedb-remote",), (REFERENCE,), ("refuse a missing table",),
        "AssertionError: refused with httperror: http error: (request_id=UUID) 400 bad request: "
        '{"error":"expected request with `content-type: application/json`","code":13}',
        "The RestAdapter requires a body of JSON, which lancedb does not send.",
    ),
)  # fmt: skip


def to_markdown() -> str:
    """Return the table of docs/reference/client-differences.md."""
    lines = ["| client | server | operations | message | reason |", "| --- | --- | --- | --- | --- |"]
    for difference in DIFFERENCES:
        clients = ", ".join(CLIENTS[name].title for name in difference.clients)
        servers = "all" if difference.servers == _ALL else ", ".join(map(_server_title, difference.servers))
        operations = "; ".join(difference.operations)
        message = difference.message.replace("|", "\\|")
        lines.append(f"| {clients} | {servers} | {operations} | `` {message} `` | {difference.reason} |")
    return "\n".join(lines)


def _server_title(name: str) -> str:
    return "RestAdapter" if name == REFERENCE else f"`{name}`"


if __name__ == "__main__":
    print(to_markdown())
