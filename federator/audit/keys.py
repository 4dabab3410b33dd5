"""Ed25519 keys (RFC 8032) as PEM files: the private key signs the heads of the chain, the public key verifies them."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from federator.connector import ConfigError, StateError
from federator.connector.options import resolve_secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


@dataclass(frozen=True)
class Signer:
    """A private key. ``id`` identifies its public key."""

    id: str
    public: Ed25519PublicKey
    _private: Ed25519PrivateKey = field(repr=False)

    def sign(self, payload: bytes) -> str:
        """Return the signature in base64."""
        return base64.b64encode(self._private.sign(payload)).decode()


def load_signer(reference: str, *, where: str) -> Signer:
    """Load the key of a reference (``file:PATH``, ``${VARIABLE}``). Raise ConfigError, which never contains any part of the key."""
    _require_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    pem = resolve_secret(reference, where=where).encode()
    key: object = None
    with suppress(ValueError, TypeError):  # a TypeError, if the key is encrypted
        key = load_pem_private_key(pem, password=None)
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
    """Write a new key pair and return its id: the private key to ``path``, readable only by its owner, the public key to ``path.pub``.

    Raise StateError if one of the files already exists or cannot be written.
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


def is_valid_signature(
    payload: bytes, signer_id: str | None, signature: str | None, known: Mapping[str, Ed25519PublicKey]
) -> bool:
    """Tell whether a base64 signature over the payload was made by the key ``signer_id`` of the known keys, which are by id.

    A missing id or signature is not valid.
    """
    from cryptography.exceptions import InvalidSignature

    if signer_id is None or signature is None or signer_id not in known:
        return False
    try:
        known[signer_id].verify(base64.b64decode(signature, validate=True), payload)
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
