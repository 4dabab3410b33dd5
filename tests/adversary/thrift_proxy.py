"""A lying proxy for thrift's strict binary protocol, buffered (as Hive metastores speak it) or framed.

Messages are decoded as trees without any interface definition: a struct is a dict from field id to ``Value``.
"""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from tests.adversary.lies import (
    EACH,
    Action,
    Cut,
    Drip,
    Edit,
    Elsewhere,
    Hang,
    Late,
    Lose,
    Op,
    Raise,
    Refuse,
    Repeat,
    Reset,
    Send,
    Stale,
)
from tests.adversary.proxy import Proxy, address, resetting

CALL, REPLY, EXCEPTION = 1, 2, 3
BOOL, BYTE, DOUBLE, I16, I32, I64, STRING, STRUCT, MAP, SET, LIST = 2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 15
_VERSION = 0x80010000
_FORMATS = {BOOL: "!?", BYTE: "!b", DOUBLE: "!d", I16: "!h", I32: "!i", I64: "!q"}
_TIMEOUT = 60

Read = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Value:
    """A value with its thrift type. Structs are dicts by field id, lists and sets are ``Items``, texts are bytes."""

    kind: int
    value: Any


@dataclass(frozen=True, slots=True)
class Items:
    """A list or set with the type of its items; of a map, ``kind`` is the pair of types and the items are pairs."""

    kind: Any
    items: list[Any]


@dataclass(frozen=True, slots=True)
class Message:
    kind: int
    name: str
    sequence: int
    fields: dict[int, Value]


def decode(read: Read) -> Message:
    """Raises EOFError where nothing comes any more."""
    (head,) = struct.unpack("!I", read(4))
    if head & 0xFFFF0000 != _VERSION:
        raise EOFError("not thrift's strict binary protocol")
    name = _read(read, STRING).decode()
    (sequence,) = struct.unpack("!i", read(4))
    return Message(head & 0xFF, name, sequence, _read(read, STRUCT))


def encode(message: Message) -> bytes:
    out = io.BytesIO()
    out.write(struct.pack("!I", _VERSION | message.kind))
    _write(out, STRING, message.name.encode())
    out.write(struct.pack("!i", message.sequence))
    _write(out, STRUCT, message.fields)
    return out.getvalue()


def _read(read: Read, kind: int) -> Any:
    if kind in _FORMATS:
        return struct.unpack(_FORMATS[kind], read(struct.calcsize(_FORMATS[kind])))[0]
    if kind == STRING:
        return read(struct.unpack("!i", read(4))[0])
    if kind == STRUCT:
        fields: dict[int, Value] = {}
        while (of := read(1)[0]) != 0:
            (number,) = struct.unpack("!h", read(2))
            fields[number] = Value(of, _read(read, of))
        return fields
    if kind == MAP:
        key, value, count = struct.unpack("!bbi", read(6))
        return Items((key, value), [(_read(read, key), _read(read, value)) for _ in range(count)])
    inner, count = struct.unpack("!bi", read(5))
    return Items(inner, [_read(read, inner) for _ in range(count)])


def _write(out: io.BytesIO, kind: int, value: Any) -> None:
    if kind in _FORMATS:
        out.write(struct.pack(_FORMATS[kind], value))
    elif kind == STRING:
        out.write(struct.pack("!i", len(value)) + value)
    elif kind == STRUCT:
        for number, held in value.items():
            out.write(struct.pack("!bh", held.kind, number))
            _write(out, held.kind, held.value)
        out.write(b"\x00")
    elif kind == MAP:
        out.write(struct.pack("!bbi", *value.kind, len(value.items)))
        for pair in value.items:
            for inner, item in zip(value.kind, pair, strict=True):
                _write(out, inner, item)
    else:
        out.write(struct.pack("!bi", value.kind, len(value.items)))
        for item in value.items:
            _write(out, value.kind, item)


class ThriftProxy(Proxy):
    """``uri`` takes the place of the target's. A call's name is its method."""

    def __init__(self, target: str, *, framed: bool = False) -> None:
        self._framed = framed
        self._first: dict[tuple[str, bytes], Message] = {}
        super().__init__(target)

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    def serve(self, connection: socket.socket) -> None:
        near = _Wire(connection, self._framed)
        upstreams: dict[tuple[str, int], _Wire] = {}
        try:
            while True:
                if not self._answer(near, near.receive(), upstreams):
                    return
        finally:
            for upstream in upstreams.values():
                upstream.close()

    def _answer(self, near: _Wire, call: Message, upstreams: dict[tuple[str, int], _Wire]) -> bool:
        """Answers one call; returns whether the connection goes on."""
        action = self.script.action(call.name)
        if isinstance(action, Refuse):
            self.refuse()
            return False
        if isinstance(action, Hang):
            self.released.wait(_TIMEOUT)
            return False
        reply: Message | bytes
        if isinstance(action, Send) and not action.forward:
            reply = action.body
        elif isinstance(action, Raise):
            reply = _exception(call, action)
        else:
            known = self._first.get(_request(call)) if isinstance(action, Stale) else None
            reply = replace(known, sequence=call.sequence) if known else self._forwarded(call, action, upstreams)
        if isinstance(action, Late) and self.released.wait(action.seconds):
            return False
        if isinstance(action, Lose):
            resetting(near.connection)
            return False
        if isinstance(action, Send):
            near.connection.sendall(action.body)
            return False
        assert isinstance(reply, Message)
        return self._send(near, near.framed_bytes(encode(reply)), action)

    def _forwarded(self, call: Message, action: Action | None, upstreams: dict[tuple[str, int], _Wire]) -> Message:
        target = address(action.target) if isinstance(action, Elsewhere) else self.target
        if target not in upstreams:
            upstreams[target] = _Wire(socket.create_connection(target, _TIMEOUT), self._framed)
        upstream = upstreams[target]
        for _ in range(2 if isinstance(action, Repeat) else 1):
            upstream.connection.sendall(upstream.framed_bytes(encode(call)))
            reply = upstream.receive()
        self._first.setdefault(_request(call), reply)
        return replace(reply, fields=edited(reply.fields, action)) if isinstance(action, Edit) else reply

    def _send(self, near: _Wire, data: bytes, action: Action | None) -> bool:
        if isinstance(action, Drip):
            for byte in data:
                if self.released.wait(action.pause):
                    return False
                near.connection.sendall(bytes([byte]))
            return True
        if isinstance(action, Cut | Reset):
            near.connection.sendall(data[: len(data) // 2])
            if isinstance(action, Reset):
                resetting(near.connection)
            return False
        near.connection.sendall(data)
        return True


class _Wire:
    """One connection, message by message."""

    def __init__(self, connection: socket.socket, framed: bool) -> None:
        self.connection = connection
        self._framed = framed
        self._file = connection.makefile("rb", 1 << 16)

    def receive(self) -> Message:
        if not self._framed:
            return decode(self._exactly)
        (length,) = struct.unpack("!i", self._exactly(4))
        frame = io.BytesIO(self._exactly(length))
        return decode(frame.read)

    def framed_bytes(self, data: bytes) -> bytes:
        return struct.pack("!i", len(data)) + data if self._framed else data

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()
            self.connection.close()

    def _exactly(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise EOFError
        return data


def _request(call: Message) -> tuple[str, bytes]:
    return call.name, encode(replace(call, sequence=0))


def _exception(call: Message, action: Raise) -> Message:
    text = Value(STRING, action.message.encode())
    if action.field is None:
        return Message(EXCEPTION, call.name, call.sequence, {1: text, 2: Value(I32, action.kind)})
    return Message(REPLY, call.name, call.sequence, {action.field: Value(STRUCT, {1: text})})


def edited(fields: dict[int, Value], edit: Edit) -> dict[int, Value]:
    """A result struct with an edit applied."""
    found = _edited(Value(STRUCT, fields), edit.path, edit)
    return found.value if found is not None else {}


def _edited(held: Value, path: tuple[Any, ...], edit: Edit) -> Value | None:
    """The value with the edit applied at ``path`` below it; None where it is to be removed."""
    if not path:
        return _changed(held, edit)
    step, rest = path[0], path[1:]
    if step is EACH:
        if held.kind not in (LIST, SET):
            return held
        items = [_edited(Value(held.value.kind, item), rest, edit) for item in held.value.items]
        return Value(held.kind, Items(held.value.kind, [item.value for item in items if item is not None]))
    if held.kind != STRUCT:
        return held
    fields = dict(held.value)
    inner = fields.get(step)
    if inner is None:
        if edit.op is Op.SET and not rest:
            fields[step] = _value(edit.value)
        return Value(STRUCT, fields)
    changed = _edited(inner, rest, edit)
    if changed is None:
        del fields[step]
    else:
        fields[step] = changed
    return Value(STRUCT, fields)


def _changed(held: Value, edit: Edit) -> Value | None:
    if edit.op is Op.REMOVE:
        return None
    if edit.op is Op.SET:
        return _value(edit.value)
    if edit.op is Op.UPPER:
        if held.kind == STRING:
            return Value(STRING, held.value.upper())
        return Value(held.kind, Items(held.value.kind, [item.upper() for item in held.value.items]))
    items = held.value.items
    changed = {Op.CLEAR: [], Op.DOUBLE: [*items, *items], Op.SHORTEN: items[:-1]}[edit.op]
    return Value(held.kind, Items(held.value.kind, changed))


def _value(value: Any) -> Value:
    """A Python value as thrift's: bool, int (i32), str, list of str."""
    if isinstance(value, bool):
        return Value(BOOL, value)
    if isinstance(value, int):
        return Value(I32, value)
    if isinstance(value, str):
        return Value(STRING, value.encode())
    if isinstance(value, list):
        return Value(LIST, Items(STRING, [item.encode() for item in value]))
    raise TypeError(f"no thrift type for {value!r}")
