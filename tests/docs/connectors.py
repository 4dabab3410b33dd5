"""Generate the connector reference from the connectors' code and from the contract tests.

``python -m tests.docs.connectors > docs/reference/connectors.md``
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import tests.contract
from federator.connector import Capabilities, Connector, ConnectorSettings
from federator.lance.facade import CatalogNamespace
from federator.registry import GROUP, get_connector, list_impls
from federator.testing.contract import ConnectorContract

_HEAD = """\
# The connectors

Each connector has a section with its behaviour where its catalog's spec is silent or differs, its properties and its capabilities.
[specs.md](specs.md) compares with the specs line by line.
The last section lists the operations of the official Lance interface that the contract suite (`federator.testing.contract`) runs on
each server. A new connector starts from [`examples/sqlite_catalog/`](../../examples/sqlite_catalog/README.md);
[recipes.md](../development/recipes.md#a-connector) lists what a connector of this project needs.

Properties are written with or without the connector's name as prefix (`hive3.uri`, `uri`). A secret must be a reference:
`${VARIABLE}` or `file:PATH`. Units are given in the description.

A table declared without a location gets the default one, `<namespace's location, else root/levels>/<table>.lance`. A random suffix is
added (`orders-5f2c81d0.lance`) if a listing with the source's `storage.*` shows anything there except Lance's own markers, fails, or
takes longer than 20 s. A dropped table keeps its data, and the suffix prevents its rows from appearing in a new table of its name. The
service also adds the suffix if its index has a table of any source at that location: a renamed table keeps its location, written or
not. Otherwise, a location that was declared but never written is used again. Tables at the root of a directory (`dir`) are the
exception: their name determines the location, so the new table is refused (TableAlreadyExists).

ListTables of a namespace above the level that has tables, such as a catalog, is InvalidInput (13) in `unity`, `polaris` and `iceberg`:
the texts of Unity and Polaris require two levels, and `lance-namespace-impls` does so for all three. In `hive3`, `hive2` and `glue` it
is an empty list if the namespace exists, as in `lance-namespace-impls`; their texts have no such rule. The service has a tree of its
own, with the sources at its root: there, a namespace above the tables has none. In all other operations on tables, an identifier with
too few levels is InvalidInput (13), in the service as in the connectors.

A timeout is for each read from a connection. A whole call ends after the connect timeout and five read timeouts, a write after the
connect timeout and one read timeout, which is 60 s at most if the read timeout is not longer. It then has code 17 and is not repeated.
All calls of an operation that writes, also its reads, end together: 60 s after it started, or one read timeout if that is longer.
Waiting for a limit of the source (`limit.*`, `client.pool-size`) does not count. The connect timeout is for the lookup of a name and
all of its addresses together, which share the time left.
`dir` in an object store: a read that brings no byte for 30 s is sent again, three times in all on S3, which takes 92 s. Reads end after
160 s, and a listing of the directory after ten minutes. A marker is written by one request and removed by two, none of which is
repeated; each ends when no byte comes for 20 s, and all after 25 s.
Without settings, in `rest` and `glue`, the timeouts are 10 s and 60 s, and 30 s to read the response to a write of `glue`.

The texts of Unity, Polaris and Iceberg have code 18 for every error of the server. Here that is the code of a status 500 and of a
response that cannot be read; other errors have the code that tells a client what to do: missing or refused credentials 16, denied 15,
too many requests 21, 502 to 504 and no response 17, a request that the server does not have 0.

The storage options of a table are the source's `storage.*`, overridden by the table's properties, as in the texts. Properties that name
a secret or an endpoint are left out, and so are `table_type` and ownership markers. A location of a namespace is used as the server
spells it; the locations below `root` are URIs, with percent-encoding in `file:` URIs.

## Identity

Each crawl, and each connection that writes, reads the identity of the catalog and compares it with the stored one:

| connector | whole source | by namespace |
| --- | --- | --- |
| `hive3`; `hive2` at a Hive 3 or 4 | the id of the metastore's database | |
| `hive2` at a Hive 2 | the missing id: it differs from a Hive 3, but not from another Hive 2 | |
| `glue` | account (GetCatalogs, else STS), region and catalog id | the target of a database that is a resource link |
| `unity` | the metastore's id, where the server has `/metastore_summary` and allows it | each catalog's id and creation time |
| `polaris` | the configured realm | each catalog's creation time, where the management API allows it |
| `iceberg` | none | the prefix that the server gives each configured warehouse, if it gives one; some servers use an id |
| `dir` | the id of the transaction that created `__manifest`; none without a manifest, or once its first version was cleaned up | |
| `rest` | the deployment, if the server is an instance of this service; else none | |

A Glue service without GetCatalogs and STS has no identity. The comparison does not detect a database that becomes a resource link, or
stops being one. If a catalog has no identity, its replacement can only be detected by the holds `half_gone` and `feed_went_back`
([mirroring.md](../explanation/mirroring.md)).

This page is generated from the code: `python -m tests.docs.connectors > docs/reference/connectors.md`.
"""
_OPERATIONS_HEAD = """\
## What was run

`yes`: the suite runs the operation there, with its modes, paging and error codes. `refused`: the capabilities of that
configuration rule it out, and it is Unsupported. `–`: the suite does not call it there. `rename_table` is `held`: it keeps the
declaration, or is Unsupported. `drop_table` is refused everywhere, since it deletes data. Odd names, crawls and concurrent use run
everywhere, an unreachable server and a denied namespace wherever a test can have them.
"""
#: the capability that each operation requires
_NEEDS = {
    "create_namespace": lambda can: bool(can.creates_namespaces_at),
    "drop_namespace": lambda can: bool(can.creates_namespaces_at),
    "declare_table": lambda can: can.writes_tables,
    "register_table": lambda can: can.writes_tables,
    "deregister_table": lambda can: can.writes_tables,
    "rename_table": lambda can: can.writes_tables,
    "drop_table": lambda can: False,
}


def text() -> str:
    """Return the page."""
    names = list_impls()
    aliases = {point.name: point.value for point in entry_points(group=GROUP)}
    parts = [_HEAD, *(_section(name) for name in names if get_connector(name).impl == name)]
    same = [
        f"`{name}` is `{get_connector(name).impl}`" for name in names if get_connector(name).impl != name and name in aliases
    ]
    parts += [f"Other names: {', '.join(same)}.\n"] if same else []
    return "\n".join([*parts, _OPERATIONS_HEAD, _operations()])


def _section(impl: str) -> str:
    connector = get_connector(impl)
    extra = f"\nNeeds `pip install 'lance-federator[{connector.extra}]'`.\n" if connector.extra else ""
    notes = inspect.cleandoc(importlib.import_module(type(connector).__module__).__doc__ or "").replace("``", "`")
    return f"## {impl}\n\n{notes}\n{extra}\n{_properties(connector)}\n{_capabilities(connector.capabilities)}"


def properties(settings: type[ConnectorSettings]) -> list[tuple[str, str, str]]:
    """Return a connector's properties, its own first: name, default and meaning."""
    everywhere = {field.name for field in dataclasses.fields(ConnectorSettings)}
    fields = sorted(dataclasses.fields(settings), key=lambda field: field.name in everywhere)
    return [(field.metadata["key"], _default(field), _meaning(field)) for field in fields]


def _properties(connector: Connector[Any]) -> str:
    rows = [f"| `{key}` | {default} | {meaning} |" for key, default, meaning in properties(connector.settings_type)]
    return "\n".join(["| property | default | meaning |", "| --- | --- | --- |", *rows, ""])


def _default(field: dataclasses.Field[Any]) -> str:
    if field.metadata.get("required"):
        return "required"
    if field.default is None or field.default is dataclasses.MISSING or field.default in ("", ()):
        return ""
    if isinstance(field.default, tuple):
        return f"`{', '.join(field.default)}`"
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


def _meaning(field: dataclasses.Field[Any]) -> str:
    meaning = str(field.metadata["doc"]).replace("``", "`").replace("|", "\\|")
    if not field.metadata["secret"]:
        return meaning
    return (
        f"{meaning} **Secret**, where its name says so." if field.metadata["key"].endswith(".*") else f"{meaning} **Secret.**"
    )


def _capabilities(can: Capabilities) -> str:
    rows = [f"| {field.name} | {_shown(getattr(can, field.name))} |" for field in dataclasses.fields(can)]
    return "\n".join(["| capability | value |", "| --- | --- |", *rows, ""])


def _shown(value: Any) -> str:
    if dataclasses.is_dataclass(value):
        return ", ".join(f"{f.name} {_shown(getattr(value, f.name))}" for f in dataclasses.fields(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, frozenset):
        numbers = sorted(value)
        return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 2 else ", ".join(map(str, numbers)) or "none"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    if value is None:
        return ""
    escaped = str(value).replace("|", "\\|")
    return f"`{escaped}`" if isinstance(value, str) else escaped


def contracts() -> Iterator[type[ConnectorContract]]:
    """The classes that hold an installed connector to the suite."""
    installed = {get_connector(impl).impl for impl in list_impls()}
    for module in sorted(info.name for info in pkgutil.iter_modules(tests.contract.__path__)):
        if module.startswith("test_"):
            members = vars(importlib.import_module(f"tests.contract.{module}"))
            for name, member in members.items():
                if name.startswith("Test") and member.connector.impl in installed:
                    yield member


def _operations() -> str:
    operations = [name for name, member in vars(CatalogNamespace).items() if inspect.isfunction(member) and _official(name)]
    rows = []
    for contract in contracts():
        called = _called(contract)
        cells = [_cell(contract.connector.capabilities, name, name in called) for name in operations]
        rows.append(f"| {contract.connector.impl} | {contract.against} | {' | '.join(cells)} |")
    return "\n".join([f"| connector | server | {' | '.join(operations)} |", "| --- " * (len(operations) + 2) + "|", *rows, ""])


def _official(name: str) -> bool:
    return any(noun in name for noun in ("_namespace", "_table", "namespace_", "table_")) and not name.startswith(
        ("_", "namespace_id")
    )


def _cell(can: Capabilities, operation: str, called: bool) -> str:
    if not called:
        return "–"
    if operation == "rename_table" and can.writes_tables:
        return "held"
    return "yes" if _NEEDS.get(operation, lambda _: True)(can) else "refused"


def _called(contract: type[ConnectorContract]) -> set[str]:
    """The operations of the official interface in the source of the tests that are collected for the class."""
    tests_of_it = [getattr(contract, name) for name in dir(contract) if name.startswith("test")]
    return {
        call for test in tests_of_it if test is not None for call in re.findall(r"facade\.(\w+)\(", inspect.getsource(test))
    }


if __name__ == "__main__":
    sys.stdout.write(text())
