"""The settings of TLS that connectors over HTTP share, where their spec names none."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from federator.connector import ConfigError, Settings, boolean, option
from federator_connectors._http.answer import Tls


def readable_file(text: str) -> str:
    """``parse`` of a path. Raises ValueError for what is no readable file."""
    if not (Path(text).is_file() and os.access(text, os.R_OK)):
        raise ValueError("the path of a readable file")
    return text


@dataclass(frozen=True, kw_only=True)
class TlsSettings(Settings):
    """How the server is trusted, and how we show who we are."""

    tls_verify: bool = option("tls.verify", True, doc="false takes any server certificate: for tests only.", parse=boolean)
    tls_ca: str | None = option("tls.ca_file", doc="File of certificates to trust. Default: what the system trusts.", parse=readable_file)  # fmt: skip  # noqa: E501
    tls_certificate: str | None = option("tls.cert_file", doc="File of the client's certificate.", parse=readable_file)
    tls_key: str | None = option("tls.key_file", doc="File of its key. Default: the certificate's file.", parse=readable_file)

    @property
    def tls(self) -> Tls:
        return Tls(verify=self.tls_verify, ca=self.tls_ca, certificate=self.tls_certificate, key=self.tls_key)

    def check_tls(self, where: str) -> None:
        """Raises ConfigError for a key without its certificate."""
        if self.tls_key is not None and self.tls_certificate is None:
            raise ConfigError(f"{where}tls.cert_file: required, since tls.key_file is set")
