"""Fingerprints of the known secrets, with which Spark tasks find texts that may contain one.

Tasks do not know all secrets of the driver, and secrets must not be sent to them. A fingerprint is 22 bits of a hash of the first six
bytes of a secret, with a random factor for each job: too little to confirm a guess, or to find a secret. A text without the fingerprint
of any secret contains no secret. About one window in four million has the fingerprint of a secret by chance.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from federator.runtime.redaction import list_known_secrets

_WINDOW_BYTES = 6
_BITS = 22
_WORD_BYTES = 8


@dataclass(frozen=True, slots=True)
class SecretFingerprints:
    """The fingerprints of some secrets. Picklable."""

    factor: int
    values: frozenset[int]

    @classmethod
    def of_known_secrets(cls) -> Self:
        """Return the fingerprints of the secrets that this process knows (``redaction.has_known_secret``)."""
        # The multiplication drops the two bytes of a word that follow the window.
        factor = (secrets.randbits(48) | 1) << 8 * (_WORD_BYTES - _WINDOW_BYTES)
        words = (
            int.from_bytes(secret.encode("utf-8", "surrogatepass")[:_WINDOW_BYTES], "little") for secret in list_known_secrets()
        )
        return cls(factor, frozenset(word * factor % 2**64 >> 64 - _BITS for word in words))

    def find_suspects(self, texts: Sequence[str]) -> list[int]:
        """Return the positions of the texts that may contain a secret, in order."""
        import numpy as np

        if not self.values:
            return []
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        data = b"".join([*encoded, bytes(_WORD_BYTES)])
        is_secret = np.zeros(2**_BITS, dtype=bool)
        is_secret[list(self.values)] = True
        factor, shift = np.uint64(self.factor), np.uint64(64 - _BITS)
        offsets = []
        for offset in range(min(_WORD_BYTES, len(data) - _WORD_BYTES)):
            words = np.frombuffer(data, "<u8", (len(data) - offset) // _WORD_BYTES, offset)
            offsets.append(np.flatnonzero(is_secret[(words * factor) >> shift]) * _WORD_BYTES + offset)
        ends = np.cumsum([len(text) for text in encoded])
        positions = np.searchsorted(ends, np.concatenate([np.empty(0, dtype=np.int64), *offsets]), side="right")
        return [int(position) for position in np.unique(positions) if position < len(texts)]
