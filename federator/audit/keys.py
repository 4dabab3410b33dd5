"""Ed25519 keys (RFC 8032) as PEM files: the private key signs the heads of the chain, the public key verifies them."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from federator.connector import ConfigError, StateError
from federator.connector.options import read_secret, resolve_reference

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


@dataclass(frozen=True)
class Signer:
    """A private key. ``id`` identifies its public key."""

    id: str
    public: Ed25519PublicKey
    _private: Any = field(repr=False)

    def sign(self, payload: bytes) -> str:
        """Return the signature in base64."""
        return base64.b64encode(self._private.sign(payload)).decode()


def load_signer(reference: str, *, where: str) -> Signer:
    """Load the key of a reference (``file:PATH``, ``${VARIABLE}``). Raise ConfigError, which never contains any part of the key."""
    _require_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(read_secret(resolve_reference(reference, where=where)).encode(), password=None)
    except ConfigError:
        raise
    except (ValueError, TypeError) as error:
        reason = str(error) if str(error).startswith("a readable file") else "an Ed25519 private key in PEM"
        raise ConfigError(f"{where}: not {reason}", hint="create a key pair: federator audit keygen") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(f"{where}: not an Ed25519 private key in PEM", hint="create a key pair: federator audit keygen")
    return Signer(key_id(key.public_key()), key.public_key(), key)


def load_public_keys(paths: Iterable[Path]) -> dict[str, Ed25519PublicKey]:
    """Load public keys of PEM files, by id. Raise ConfigError with the file's name."""
    _require_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    keys = {}
    for path in paths:
        try:
            key = load_pem_public_key(path.read_bytes())
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
        except ValueError:
            raise ConfigError(f"{path}: not a public key in PEM") from None
        if not isinstance(key, Ed25519PublicKey):
            raise ConfigError(f"{path}: not an Ed25519 public key in PEM")
        keys[key_id(key)] = key
    return keys


def generate_key_pair(path: Path) -> str:
    """Write a new key pair, and return its id. ``path`` gets the private key, readable only by its owner; ``path.pub`` the public
    key.

    Raise StateError if one of the files already exists.
    """
    _require_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = Ed25519PrivateKey.generate()
    _write_key_file(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    _write_key_file(path.with_name(f"{path.name}.pub"), public, 0o644)
    return key_id(key.public_key())


def key_id(key: Ed25519PublicKey) -> str:
    """Return the id of a key: the first half of the SHA-256 of its 32 bytes, in hexadecimal."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:32]


def is_valid_signature(payload: bytes, key: str | None, signature: str | None, known: Mapping[str, Ed25519PublicKey]) -> bool:
    """Tell whether a base64 signature over the payload was made by a known key."""
    from cryptography.exceptions import InvalidSignature

    if key is None or signature is None or key not in known:
        return False
    try:
        known[key].verify(base64.b64decode(signature, validate=True), payload)
    except (InvalidSignature, ValueError):
        return False
    return True


def _write_key_file(path: Path, content: bytes, mode: int) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
    except FileExistsError:
        raise StateError(f"{path} already exists", hint="choose another name: an overwritten key cannot be restored") from None
    except OSError as error:
        raise StateError(f"{path}: cannot be written ({error.strerror})") from None


def _require_cryptography() -> None:
    try:
        import cryptography  # noqa: F401 - checks only that it is installed
    except ModuleNotFoundError:
        raise ConfigError("signing needs the package cryptography", hint="pip install 'lance-federator[signing]'") from None
