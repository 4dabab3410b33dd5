"""Kerberos as the SASL mechanism GSSAPI (RFC 4752), by MIT's ``libgssapi_krb5`` through ctypes; the reasons are in ADR 5.

The names are those of RFC 2744 and of ``gssapi/gssapi.h``.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from functools import cache

from federator.connector import ConfigError
from federator_connectors._hive.errors import LoginFailed


class _Buffer(Structure):
    _fields_ = (("length", c_size_t), ("value", c_void_p))


class _Oid(Structure):
    _fields_ = (("length", c_uint32), ("elements", c_char_p))


class _StoreElement(Structure):
    _fields_ = (("key", c_char_p), ("value", c_char_p))


class _Store(Structure):
    _fields_ = (("count", c_uint32), ("elements", POINTER(_StoreElement)))


def _oid(encoded: str) -> _Oid:
    content = bytes.fromhex(encoded)
    return _Oid(len(content), content)


_KRB5 = _oid("2a864886f712010202")
_PRINCIPAL_NAME = _oid("2a864886f71201020201")

_CONTINUE_NEEDED = 1
_ERRORS = 0xFFFF0000
_MUTUAL, _SEQUENCE, _CONF, _INTEG = 2, 8, 16, 32
_INITIATE = 1
_GSS_CODE, _MECH_CODE = 1, 2

# The layers that a server offers, the strongest first: privacy, integrity, none.
_LAYERS = (4, 2, 1)
_PRIVACY, _INTEGRITY, _NO_LAYER = _LAYERS
_LARGEST_MESSAGE = (0xFFFFFF).to_bytes(3, "big")


@cache
def _library() -> ctypes.CDLL:
    """MIT's library. Raises ConfigError where it is not installed."""
    name = ctypes.util.find_library("gssapi_krb5") or "libgssapi_krb5.so.2"
    try:
        return ctypes.CDLL(name)
    except OSError:
        hint = "install libgssapi-krb5-2 (Debian), krb5-libs (Fedora) or krb5 (Alpine)"
        raise ConfigError("client.auth = kerberos needs MIT's Kerberos library", hint=hint) from None


def _call(name: str, *arguments: object) -> int:
    """The major status of a GSS call, if it is none of an error. Raises LoginFailed with the library's own texts."""
    minor = c_uint32()
    major = int(getattr(_library(), name)(byref(minor), *arguments)) & 0xFFFFFFFF
    if major & _ERRORS:
        texts = [_text(major, _GSS_CODE), _text(minor.value, _MECH_CODE)]
        raise LoginFailed(": ".join(text for text in texts if text))
    return major


def _text(status: int, kind: int) -> str:
    minor, more, message = c_uint32(), c_uint32(), _Buffer()
    _library().gss_display_status(
        byref(minor), c_uint32(status), c_int(kind), byref(_KRB5), byref(more), byref(message)
    )  # fmt: skip
    return _taken(message).decode("utf-8", "replace")


def _given(content: bytes) -> _Buffer:
    """A buffer over ``content``, which must outlive it."""
    return _Buffer(len(content), ctypes.cast(c_char_p(content), c_void_p))


def _taken(buffer: _Buffer) -> bytes:
    """The content of a buffer that the library made, which is released."""
    content = ctypes.string_at(buffer.value, buffer.length) if buffer.value else b""
    _library().gss_release_buffer(byref(c_uint32()), byref(buffer))
    return content


class Kerberos:
    """One login as a client, in the shape that thrift's SASL transport expects. For one connection and one thread at a time.

    ``principal`` is the server's; ``keytab`` a file with our keys, else the ticket cache is used; ``user`` our own principal.
    """

    mechanism = "GSSAPI"

    def __init__(self, principal: str, *, keytab: str | None = None, user: str | None = None) -> None:
        """Raises LoginFailed if there are no credentials, ConfigError if there is no library."""
        self.complete = False
        self._established = False
        self._layer = _NO_LAYER
        self._context, self._credentials, self._target = c_void_p(), c_void_p(), c_void_p()
        try:
            self._target = _name(principal)
            self._credentials = _credentials(keytab, user)
        except LoginFailed:
            self.dispose()
            raise

    def process(self, challenge: bytes | None = None) -> bytes:
        """The answer to a challenge of the server; the first call takes none. Raises LoginFailed."""
        if not self._established:
            return self._step(challenge or b"")
        return self._choose_layer(self._unwrapped(challenge or b""))

    def wrap(self, message: bytes) -> bytes:
        return message if self._layer == _NO_LAYER else self._wrapped(message, private=self._layer == _PRIVACY)

    def unwrap(self, message: bytes) -> bytes:
        return message if self._layer == _NO_LAYER else self._unwrapped(message)

    def dispose(self) -> None:
        """Releases what the library holds; harmless twice."""
        for release, handle in (("gss_release_name", self._target), ("gss_release_cred", self._credentials)):
            if handle:
                getattr(_library(), release)(byref(c_uint32()), byref(handle))
        if self._context:
            _library().gss_delete_sec_context(byref(c_uint32()), byref(self._context), None)

    def _step(self, token: bytes) -> bytes:
        given, made, flags = _given(token), _Buffer(), _MUTUAL | _SEQUENCE | _CONF | _INTEG
        status = _call(
            "gss_init_sec_context", self._credentials, byref(self._context), self._target, byref(_KRB5), c_uint32(flags),
            c_uint32(0), None, byref(given), None, byref(made), None, None,
        )  # fmt: skip
        self._established = not status & _CONTINUE_NEEDED
        return _taken(made)

    def _choose_layer(self, offer: bytes) -> bytes:
        if len(offer) != 4:
            raise LoginFailed("the server offers no security layer")
        self._layer = next((layer for layer in _LAYERS if offer[0] & layer), 0)
        if not self._layer:
            raise LoginFailed("the server offers a security layer that does not exist")
        self.complete = True
        return self._wrapped(bytes([self._layer]) + _LARGEST_MESSAGE, private=False)

    def _wrapped(self, message: bytes, *, private: bool) -> bytes:
        given, made = _given(message), _Buffer()
        _call("gss_wrap", self._context, c_int(private), c_uint32(0), byref(given), None, byref(made))
        return _taken(made)

    def _unwrapped(self, message: bytes) -> bytes:
        given, made = _given(message), _Buffer()
        _call("gss_unwrap", self._context, byref(given), byref(made), None, None)
        return _taken(made)


def _name(principal: str) -> c_void_p:
    """A principal as it stands: no name is looked up and no realm guessed."""
    text = principal.encode()
    given, made = _given(text), c_void_p()
    _call("gss_import_name", byref(given), byref(_PRINCIPAL_NAME), byref(made))
    return made


def _credentials(keytab: str | None, user: str | None) -> c_void_p:
    """Ours, to start a login with. From a keytab, tickets are fetched and renewed by the library and kept in memory."""
    store = [(b"client_keytab", f"FILE:{keytab}"), (b"ccache", f"MEMORY:federator-{keytab}-{user}")] if keytab else []
    name = _name(user) if user else c_void_p()
    made = c_void_p()
    try:
        _call("gss_acquire_cred_from", name, c_uint32(0), None, c_int(_INITIATE), _store(store), byref(made), None, None)
    finally:
        if name:
            _library().gss_release_name(byref(c_uint32()), byref(name))
    return made


def _store(entries: Sequence[tuple[bytes, str]]) -> object:
    if not entries:
        return None
    elements = (_StoreElement * len(entries))(*(_StoreElement(key, value.encode()) for key, value in entries))
    return byref(_Store(len(entries), elements))
