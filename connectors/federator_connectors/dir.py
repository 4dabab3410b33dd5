"""A directory of Lance tables, without a catalog: impl ``dir``, the Lance directory namespace.

A directory is a table even if it is empty or holds something else: opening it then fails, which is a matter of verification.

- ``x.lance/`` is the table ``x``, else ``x/`` is; if both are there, ``x.lance`` wins and the other is reported. Names that start
  with ``_`` or ``.`` are no tables. New tables are made as ``x.lance``, with the marker ``.lance-reserved`` until something is
  written; a deregistered table is hidden by ``.lance-deregistered``, its data stays, and RegisterTable shows it again.
- The directory is a path (a relative one starts at the process's working directory) or a URI: ``file:``, ``s3://``, ``gs://``,
  ``az://``, ``abfss://``, ``hdfs://``, with Lance's own storage options in ``dir.storage.*``.
- A directory has no place for properties or for locations elsewhere: both are Unsupported, and so is altering.
- Where pylance has made a ``__manifest``, its child namespaces are read, too, and its tables at whatever place below the directory
  it names. ``dir.manifest_enabled = true`` also creates namespaces; ``false`` leaves the manifest out. Tables in a namespace are
  registered at a place below the directory; without one pylance chooses it. pylance drops the properties of a registered table.
- In a directory with a manifest, a subdirectory without the suffix ``.lance`` whose name starts with eight hexadecimal digits and
  ``_``, or that lies above a table of the manifest, belongs to the manifest and is no table of its own.

``DirNamespace`` is the class for ``lance_namespace.connect("federator_connectors.dir.DirNamespace", {...})``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from federator.connector import Capabilities, Connector
from federator.connector.lazy import lazy_namespace
from federator_connectors._dir.catalog import DirCatalog
from federator_connectors._dir.plain import NAMES
from federator_connectors._dir.settings import OFF, ON, DirSettings

#: pylance's manifest knows no limit to nesting; identifiers of callers need one
_DEEPEST = 64


class DirConnector(Connector[DirSettings]):
    """The adapter of directories."""

    impl = "dir"
    settings_type = DirSettings
    capabilities = Capabilities(
        min_depth=0,
        max_depth=_DEEPEST,
        levels=("namespace",),
        names=NAMES,
        can_alter=False,
        keeps_properties=False,
        keeps_comment=False,
        makes_location=True,
    )

    def capabilities_of(self, settings: DirSettings) -> Capabilities:
        if settings.manifest_enabled == OFF:
            return replace(self.capabilities, max_depth=0, levels=())
        if settings.manifest_enabled == ON:
            # The manifest joins the names of an identifier by a dollar.
            names = replace(NAMES, pattern=r"(?!.*\$)" + NAMES.pattern)
            return replace(self.capabilities, names=names, creates_namespaces_at=frozenset(range(1, _DEEPEST + 1)))
        return self.capabilities

    def open(self, source: str, settings: DirSettings) -> DirCatalog:
        return DirCatalog(source, settings)

    def concurrency(self, properties: Mapping[str, str]) -> int:  # noqa: ARG002
        return 1


CONNECTOR = DirConnector()
__getattr__ = lazy_namespace(__name__, CONNECTOR, "DirNamespace")
