"""Kerberos login as the SASL mechanism GSSAPI (RFC 4752), with MIT's ``libgssapi_krb5``.

The library is called through ctypes; ADR 5 gives the reasons. The names are those of RFC 2744 and of ``gssapi/gssapi.h``.
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
    """Return the object identifier of its DER encoding in hexadecimal."""
    content = bytes.fromhex(encoded)
    return _Oid(len(content), content)


# 1.2.840.113554.1.2.2, the mechanism Kerberos 5, and 1.2.840.113554.1.2.2.1, GSS_KRB5_NT_PRINCIPAL_NAME (RFC 1964)
_KRB5 = _oid("2a864886f712010202")
_PRINCIPAL_NAME = _oid("2a864886f71201020201")

# GSS_S_CONTINUE_NEEDED, and the bits of a major status that stand for errors: GSS_ERROR
_CONTINUE_NEEDED = 1
_ERRORS = 0xFFFF0000
# GSS_C_MUTUAL_FLAG, GSS_C_SEQUENCE_FLAG, GSS_C_CONF_FLAG, GSS_C_INTEG_FLAG
_MUTUAL, _SEQUENCE, _CONF, _INTEG = 2, 8, 16, 32
# GSS_C_INITIATE: credentials of a client
_INITIATE = 1
# GSS_C_GSS_CODE and GSS_C_MECH_CODE: a major status, and a minor one, which is the mechanism's own
_GSS_CODE, _MECH_CODE = 1, 2

# The security layers that a server can offer, the strongest first: privacy, integrity, none.
_LAYERS = (4, 2, 1)
_PRIVACY, _INTEGRITY, _NO_LAYER = _LAYERS
_LARGEST_MESSAGE = (0xFFFFFF).to_bytes(3, "big")


@cache
def _load_library() -> ctypes.CDLL:
    """Load MIT's library. Raise ConfigError if it is not installed."""
    name = ctypes.util.find_library("gssapi_krb5") or "libgssapi_krb5.so.2"
    try:
        return ctypes.CDLL(name)
    except OSError:
        hint = "install libgssapi-krb5-2 (Debian), krb5-libs (Fedora) or krb5 (Alpine)"
        raise ConfigError("client.auth = kerberos needs MIT's Kerberos library", hint=hint) from None


def _call_gss(name: str, *arguments: object) -> int:
    """Call a GSS function and return its major status. Raise LoginFailed with the library's texts if the status is an error."""
    minor = c_uint32()
    major = int(getattr(_load_library(), name)(byref(minor), *arguments)) & 0xFFFFFFFF
    if major & _ERRORS:
        texts = [_describe_status(major, _GSS_CODE), _describe_status(minor.value, _MECH_CODE)]
        raise LoginFailed(": ".join(text for text in texts if text))
    return major


def _describe_status(status: int, kind: int) -> str:
    minor, more, message = c_uint32(), c_uint32(), _Buffer()
    _load_library().gss_display_status(
        byref(minor), c_uint32(status), c_int(kind), byref(_KRB5), byref(more), byref(message)
    )  # fmt: skip
    return _take_buffer(message).decode("utf-8", "replace")


def _input_buffer(content: bytes) -> _Buffer:
    """Return a buffer over ``content``. ``content`` must outlive the buffer."""
    return _Buffer(len(content), ctypes.cast(c_char_p(content), c_void_p))


def _take_buffer(buffer: _Buffer) -> bytes:
    """Return the content of a buffer that the library allocated, and release the buffer."""
    content = ctypes.string_at(buffer.value, buffer.length) if buffer.value else b""
    _load_library().gss_release_buffer(byref(c_uint32()), byref(buffer))
    return content


class Kerberos:
    """One client login with the interface that thrift's SASL transport expects. For one connection and one thread at a time.

    ``principal`` is the server's principal and ``user`` the client's. ``keytab`` is a file with the client's keys; without it the
    ticket cache is used. Client and server first establish a GSS context, then they agree on a security layer; ``complete`` is set
    after both.
    """

    mechanism = "GSSAPI"

    def __init__(self, principal: str, *, keytab: str | None = None, user: str | None = None) -> None:
        """Acquire the credentials. Raise LoginFailed if there are none, and ConfigError if the library is not installed."""
        self.complete = False
        self._established = False
        self._layer = _NO_LAYER
        self._context, self._credentials, self._target = c_void_p(), c_void_p(), c_void_p()
        try:
            self._target = _import_name(principal)
            self._credentials = _acquire_credentials(keytab, user)
        except LoginFailed:
            self.dispose()
            raise

    def process(self, challenge: bytes | None = None) -> bytes:
        """Return the response to a challenge of the server. The first call has no challenge. Raise LoginFailed."""
        if not self._established:
            return self._continue_context(challenge or b"")
        return self._choose_layer(self._gss_unwrap(challenge or b""))

    def wrap(self, message: bytes) -> bytes:
        return message if self._layer == _NO_LAYER else self._gss_wrap(message, private=self._layer == _PRIVACY)

    def unwrap(self, message: bytes) -> bytes:
        return message if self._layer == _NO_LAYER else self._gss_unwrap(message)

    def dispose(self) -> None:
        """Release the library's handles. A second call has no effect."""
        for release, handle in (("gss_release_name", self._target), ("gss_release_cred", self._credentials)):
            if handle:
                getattr(_load_library(), release)(byref(c_uint32()), byref(handle))
        if self._context:
            _load_library().gss_delete_sec_context(byref(c_uint32()), byref(self._context), None)

    def _continue_context(self, token: bytes) -> bytes:
        """Pass the server's token to the library and return the one to send. Both may be empty."""
        token_buffer, output, flags = _input_buffer(token), _Buffer(), _MUTUAL | _SEQUENCE | _CONF | _INTEG
        status = _call_gss(
            "gss_init_sec_context", self._credentials, byref(self._context), self._target, byref(_KRB5), c_uint32(flags),
            c_uint32(0), None, byref(token_buffer), None, byref(output), None, None,
        )  # fmt: skip
        self._established = not status & _CONTINUE_NEEDED
        return _take_buffer(output)

    def _choose_layer(self, offer: bytes) -> bytes:
        """Choose the strongest layer that the server offers, and return the response (RFC 4752, section 3.1).

        Both are four bytes: the layers, and the size of the largest message.
        """
        if len(offer) != 4:
            raise LoginFailed("the server offers no security layer")
        self._layer = next((layer for layer in _LAYERS if offer[0] & layer), 0)
        if not self._layer:
            raise LoginFailed("the server offers a security layer that does not exist")
        self.complete = True
        return self._gss_wrap(bytes([self._layer]) + _LARGEST_MESSAGE, private=False)

    def _gss_wrap(self, message: bytes, *, private: bool) -> bytes:
        message_buffer, output = _input_buffer(message), _Buffer()
        _call_gss("gss_wrap", self._context, c_int(private), c_uint32(0), byref(message_buffer), None, byref(output))
        return _take_buffer(output)

    def _gss_unwrap(self, message: bytes) -> bytes:
        message_buffer, output = _input_buffer(message), _Buffer()
        _call_gss("gss_unwrap", self._context, byref(message_buffer), byref(output), None, None)
        return _take_buffer(output)


def _import_name(principal: str) -> c_void_p:
    """Return the GSS name of a principal, unchanged: no host name is resolved and no realm is added."""
    text = principal.encode()
    text_buffer, imported = _input_buffer(text), c_void_p()
    _call_gss("gss_import_name", byref(text_buffer), byref(_PRINCIPAL_NAME), byref(imported))
    return imported


def _acquire_credentials(keytab: str | None, user: str | None) -> c_void_p:
    """Return the client's credentials. With a keytab, the library requests and renews the tickets and keeps them in memory."""
    store = [(b"client_keytab", f"FILE:{keytab}"), (b"ccache", f"MEMORY:federator-{keytab}-{user}")] if keytab else []
    name = _import_name(user) if user else c_void_p()
    credentials = c_void_p()
    try:
        _call_gss(
            "gss_acquire_cred_from",
            name,
            c_uint32(0),
            None,
            c_int(_INITIATE),
            _credential_store(store),
            byref(credentials),
            None,
            None,
        )
    finally:
        if name:
            _load_library().gss_release_name(byref(c_uint32()), byref(name))
    return credentials


def _credential_store(entries: Sequence[tuple[bytes, str]]) -> object:
    if not entries:
        return None
    elements = (_StoreElement * len(entries))(*(_StoreElement(key, value.encode()) for key, value in entries))
    return byref(_Store(len(entries), elements))
