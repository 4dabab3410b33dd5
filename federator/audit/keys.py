"""Ed25519 keys (RFC 8032) as PEM files: the private one signs the heads of the chain, the public one checks them anywhere."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from federator.connector import ConfigError, StateError
from federator.connector.options import resolve, secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


@dataclass(frozen=True)
class Signer:
    """A private key; ``id`` names its public half."""

    id: str
    public: Ed25519PublicKey
    _private: Any = field(repr=False)

    def sign(self, payload: bytes) -> str:
        """The signature in base64."""
        return base64.b64encode(self._private.sign(payload)).decode()


def signer(reference: str, *, where: str) -> Signer:
    """The key that a reference (``file:PATH``, ``${VARIABLE}``) leads to. Raises ConfigError, never with any of the key in it."""
    _library()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(secret(resolve(reference, where=where)).encode(), password=None)
    except ConfigError:
        raise
    except (ValueError, TypeError) as error:
        reason = str(error) if str(error).startswith("a readable file") else "an Ed25519 private key in PEM"
        raise ConfigError(f"{where}: not {reason}", hint="federator audit keygen writes a pair") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(f"{where}: not an Ed25519 private key in PEM", hint="federator audit keygen writes a pair")
    return Signer(key_id(key.public_key()), key.public_key(), key)


def public_keys(paths: Iterable[Path]) -> dict[str, Ed25519PublicKey]:
    """Public keys of PEM files, by id. Raises ConfigError that names the file."""
    _library()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    found = {}
    for path in paths:
        try:
            key = load_pem_public_key(path.read_bytes())
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
        except ValueError:
            raise ConfigError(f"{path}: not a public key in PEM") from None
        if not isinstance(key, Ed25519PublicKey):
            raise ConfigError(f"{path}: not an Ed25519 public key in PEM")
        found[key_id(key)] = key
    return found


def generate(path: Path) -> str:
    """Writes a new pair: the private key to ``path``, for its owner alone, the public one beside it with ``.pub``; returns its id.

    Raises StateError where one of the files is there already.
    """
    _library()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = Ed25519PrivateKey.generate()
    _write(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    _write(path.with_name(f"{path.name}.pub"), public, 0o644)
    return key_id(key.public_key())


def key_id(key: Ed25519PublicKey) -> str:
    """What names a key: the first half of the SHA-256 of its 32 bytes, hexadecimal."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:32]


def is_signed(payload: bytes, key: str | None, signature: str | None, known: Mapping[str, Ed25519PublicKey]) -> bool:
    """Whether a signature in base64 is that of a known key over the payload."""
    from cryptography.exceptions import InvalidSignature

    if key is None or signature is None or key not in known:
        return False
    try:
        known[key].verify(base64.b64decode(signature, validate=True), payload)
    except (InvalidSignature, ValueError):
        return False
    return True


def _write(path: Path, content: bytes, mode: int) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
    except FileExistsError:
        raise StateError(
            f"{path} is there already", hint="a key that was lost cannot sign again: choose another name"
        ) from None
    except OSError as error:
        raise StateError(f"{path}: cannot be written ({error.strerror})") from None


def _library() -> None:
    try:
        import cryptography  # noqa: F401 - only whether it is there
    except ModuleNotFoundError:
        raise ConfigError("signing needs the package cryptography", hint="pip install 'lance-federator[signing]'") from None
