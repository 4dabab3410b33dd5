"""Faults of a memory catalog, written as one text: ``fail:sales=17; deny:hr; hang:ops=30; short:big; lose:sales$orders``.

=============  ========================================================================================
``fail``       every listing and crawl of the namespace fails with the code (17 if none is given)
``deny``       the same with PermissionDenied
``hang``       reading the namespace takes that many seconds (an hour if none is given)
``short``      the crawl hands over half of the namespace, then fails: a short listing with an error
``undescribed``  the table is listed, but describing it fails with the code (17)
``refuse``     writes to the object fail with the code (18) and change nothing
``lose``       writes to the object happen, and the answer is lost: ServiceUnavailable
``feed``       asking for the feed of changes fails with the code (17); its path is ``/``
``identity``   reading the identity fails with the code (17); its path is ``/``
=============  ========================================================================================

A path is written as its key (``federator.model.path_key``), ``/`` being the root and ``*`` every path.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from federator.connector import CatalogError, ConfigError, PermissionDenied, ServiceUnavailable
from federator.model import ROOT, Path, path_key

KINDS = ("fail", "deny", "hang", "short", "undescribed", "refuse", "lose", "feed", "identity")


@dataclass(frozen=True)
class Faults:
    """Parsed faults: value texts by kind and path key."""

    by_kind: dict[str, dict[str, str]]

    @classmethod
    def parse(cls, text: str) -> Faults:
        """Raises ConfigError that names the kinds there are."""
        by_kind: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
        for part in filter(None, (part.strip() for part in text.split(";"))):
            kind, _, rest = part.partition(":")
            path, _, value = rest.partition("=")
            if kind not in by_kind or not path:
                raise ConfigError(f"faults: {part!r} is none", hint=f"<kind>:<path>[=<value>], kind one of {', '.join(KINDS)}")
            by_kind[kind]["" if path == "/" else path] = value
        return cls(by_kind)

    def value(self, kind: str, path: Path) -> str | None:
        """The value of a fault at a path (an empty text if it has none), and None where there is no fault."""
        found = self.by_kind[kind]
        return found.get(path_key(path), found.get("*"))

    def reading(self, namespace: Path) -> None:
        """Hangs or raises, as reading this namespace does."""
        if (seconds := self.value("hang", namespace)) is not None:
            time.sleep(float(seconds or 3600))
        if self.value("deny", namespace) is not None:
            raise PermissionDenied(f"{path_key(namespace)}: denied by the test")
        self._raise("fail", namespace, 17)

    def describing(self, table: Path) -> None:
        self._raise("undescribed", table, 17)

    def feeding(self) -> None:
        self._raise("feed", ROOT, 17)

    def identifying(self) -> None:
        self._raise("identity", ROOT, 17)

    def before_write(self, path: Path) -> None:
        self._raise("refuse", path, 18)

    def after_write(self, path: Path) -> None:
        if self.value("lose", path) is not None:
            raise ServiceUnavailable(f"{path_key(path)}: the answer was lost by the test")

    def _raise(self, kind: str, path: Path, default: int) -> None:
        code = self.value(kind, path)
        if code is not None:
            raise error_of(int(code or default), f"{path_key(path)}: failed by the test")


def error_of(code: int, message: str) -> CatalogError:
    """An error of the class that carries ``code``; Internal for an unknown one."""
    classes = {kind.code: kind for kind in CatalogError.__subclasses__()}
    return classes.get(code, classes[18])(message)
