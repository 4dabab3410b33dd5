"""What a test did to catalogs, written down by itself, and what the product wrote, as a proxy saw it: the oracle compares them."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

from tests.adversary.http_proxy import HttpProxy, Request, Response
from tests.adversary.lies import Action
from tests.adversary.thrift_proxy import EXCEPTION, Message, ThriftProxy, _Wire

#: seconds between the product's last observation and its call that docs/explanation/mirroring.md
#: leaves to chance, and a slow machine's share
SLACK = 6.0
_GLUE = {"CreateTable": "create", "UpdateTable": "update", "DeleteTable": "delete"}
_HIVE = {
    "create_table_with_environment_context": "begin", "drop_table": "delete", "alter_table_with_environment_context": "update"
}  # fmt: skip


@dataclass
class Book:
    """When each table was certainly there, by the clock of this process. ``locations``: of those that are there now."""

    locations: dict[str, str] = field(default_factory=dict)
    _times: dict[str, list[list[float]]] = field(default_factory=lambda: defaultdict(list))

    def created(self, name: str, location: str) -> None:
        """Called after the call."""
        self.locations[name] = location
        self._times[name].append([time.monotonic(), inf])

    def removing(self, name: str) -> str:
        """Called before the call; returns the location."""
        self._times[name][-1][1] = time.monotonic()
        return self.locations.pop(name)

    def was_there(self, name: str, at: float) -> bool:
        """Whether the table was there at ``at`` and for ``SLACK`` seconds before."""
        return any(since <= at - SLACK and at <= until for since, until in self._times[name])


@dataclass(frozen=True, slots=True)
class Write:
    """A write of the product that the catalog accepted. ``arrived_at``: when it reached the proxy.

    The product declares a table in Hive by two calls, "begin" and "update". A "begin" whose process was killed is ended by "undo":
    what is dropped is a view without location.
    """

    kind: str
    database: str
    table: str
    arrived_at: float


class Writes:
    """The writes that were accepted, in their order; safe for threads. ``watch`` is called as each write arrives, before it is
    forwarded, with the kind of catalog and the port of the caller's connection."""

    def __init__(self) -> None:
        self.watch: Callable[[str, int], None] = lambda catalog, port: None
        self._rows: list[Write] = []
        self._lock = threading.Lock()

    def add(self, write: Write) -> None:
        with self._lock:
            self._rows.append(write)

    def of(self, database: str) -> Sequence[Write]:
        with self._lock:
            return [row for row in self._rows if row.database == database]


class GlueRecorder(HttpProxy):
    """Forwards everything, and keeps the writes of tables."""

    def __init__(self, target: str, writes: Writes) -> None:
        self._writes, self._caller = writes, threading.local()
        super().__init__(target)

    def serve(self, connection: socket.socket) -> None:
        self._caller.port = connection.getpeername()[1]
        super().serve(connection)

    def forward(self, request: Request, target: tuple[str, int]) -> Response:
        if request.call.startswith(("Create", "Update", "Delete")):
            self._writes.watch("glue", self._caller.port)
        arrived_at = time.monotonic()
        response = super().forward(request, target)
        self._first.clear()
        if (kind := _GLUE.get(request.call)) and response.status == 200:
            body = json.loads(request.body)
            name = body.get("Name") or body["TableInput"]["Name"]
            self._writes.add(Write(kind, body["DatabaseName"].lower(), name.lower(), arrived_at))
        return response


class HiveRecorder(ThriftProxy):
    """Forwards everything, and keeps the writes of tables."""

    def __init__(self, target: str, writes: Writes) -> None:
        self._writes, self._caller = writes, threading.local()
        self._begun: set[tuple[str, str]] = set()
        super().__init__(target)

    def serve(self, connection: socket.socket) -> None:
        self._caller.port = connection.getpeername()[1]
        super().serve(connection)

    def _forwarded(self, call: Message, action: Action | None, upstreams: dict[tuple[str, int], _Wire]) -> Message:
        if call.name.startswith(("create_", "drop_", "alter_")):
            self._writes.watch("hive", self._caller.port)
        arrived_at = time.monotonic()
        reply = super()._forwarded(call, action, upstreams)
        self._first.clear()
        if (kind := _HIVE.get(call.name)) and reply.kind != EXCEPTION and not reply.fields:
            fields, numbers = (call.fields[1].value, (2, 1)) if kind == "begin" else (call.fields, (1, 2))
            database, table = (fields[number].value.decode() for number in numbers)
            name = database.rpartition("#")[2], table
            self._writes.add(Write("undo" if kind == "delete" and name in self._begun else kind, *name, arrived_at))
            (self._begun.add if kind == "begin" else self._begun.discard)(name)
        return reply


def violations(writes: Sequence[Write], origin: Book, people: Book) -> list[str]:
    """Return the writes that must not have been: deregistering what the origin has, and changing what people made at the target."""
    found = []
    for write in writes:
        if write.kind == "delete" and origin.was_there(write.table, write.arrived_at):
            found.append(f"{write.table} was deregistered while its origin was there")
        if write.kind in ("delete", "update", "undo") and people.was_there(write.table, write.arrived_at):
            found.append(f"{write.kind} of {write.table}, which other people had made")
    return found
