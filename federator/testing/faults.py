"""Injected faults of a memory catalog.

They are written as one text: ``fail:sales=17; deny:hr; hang:ops=30; short:big; lose:sales$orders``.

=============  ========================================================================================
``fail``       every listing and crawl of the namespace fails with the code (default: 17)
``deny``       the same with PermissionDenied
``hang``       reading the namespace takes that many seconds (default: an hour), or until the fault is removed
``short``      the crawl returns half of the namespace, then fails: an incomplete listing with an error
``undescribed``  the table is listed, but describing it fails with the code (17)
``unnamed``    the table is listed and described, but omitted if several tables are read by their names
``refuse``     writes to the object fail with the code (18) and change nothing
``lose``       writes to the object succeed, but the response is lost: ServiceUnavailable
``slow``       writes to the object take effect at once, and their responses are as late as with ``hang``
``feed``       reading the change feed fails with the code (17); its path is ``/``
``identity``   reading the identity fails with the code (17); its path is ``/``
=============  ========================================================================================

A path is written as its key (``federator.model.path_key``). ``/`` is the root, ``*`` every path.
"""

from __future__ import annotations

from dataclasses import dataclass

from federator.connector import CatalogError, ConfigError, PermissionDenied, ServiceUnavailable
from federator.model import ROOT, Path, path_key

KINDS = ("fail", "deny", "hang", "short", "undescribed", "unnamed", "refuse", "lose", "slow", "feed", "identity")


@dataclass(frozen=True)
class Faults:
    """Parsed faults: value texts by kind and path key."""

    by_kind: dict[str, dict[str, str]]

    @classmethod
    def parse(cls, text: str) -> Faults:
        """Parse the text of faults. Raise ConfigError, which lists the kinds."""
        by_kind: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
        for part in filter(None, (part.strip() for part in text.split(";"))):
            kind, _, rest = part.partition(":")
            path, _, value = rest.partition("=")
            if kind not in by_kind or not path:
                raise ConfigError(
                    f"faults: {part!r} is not a fault", hint=f"use <kind>:<path>[=<value>] with a kind of {', '.join(KINDS)}"
                )
            by_kind[kind]["" if path == "/" else path] = value
        return cls(by_kind)

    def value(self, kind: str, path: Path) -> str | None:
        """Return the value of a fault at a path (an empty text if it has none); None if there is no fault."""
        values = self.by_kind[kind]
        return values.get(path_key(path), values.get("*"))

    def before_read(self, namespace: Path) -> None:
        """Raise for the faults of reading a namespace. The catalog applies ``hang``."""
        if self.value("deny", namespace) is not None:
            raise PermissionDenied(f"{path_key(namespace)}: denied by the test")
        self._raise("fail", namespace, 17)

    def before_describe(self, table: Path) -> None:
        self._raise("undescribed", table, 17)

    def before_feed_read(self) -> None:
        self._raise("feed", ROOT, 17)

    def before_identify(self) -> None:
        self._raise("identity", ROOT, 17)

    def before_write(self, path: Path) -> None:
        self._raise("refuse", path, 18)

    def after_write(self, path: Path) -> None:
        if self.value("lose", path) is not None:
            raise ServiceUnavailable(f"{path_key(path)}: the response was lost by the test")

    def _raise(self, kind: str, path: Path, default: int) -> None:
        code = self.value(kind, path)
        if code is not None:
            raise error_of(int(code or default), f"{path_key(path)}: failed by the test")


def error_of(code: int, message: str) -> CatalogError:
    """Return an error of the class with this ``code``; Internal for an unknown code."""
    classes = {kind.code: kind for kind in CatalogError.__subclasses__()}
    return classes.get(code, classes[18])(message)
