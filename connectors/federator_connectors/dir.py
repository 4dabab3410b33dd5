"""A directory of Lance tables, without a catalog: impl ``dir``, the Lance directory namespace.

A subdirectory is a table even if it is empty or contains other files. Opening such a table fails; verification reports that.

- ``x.lance/`` is the table ``x``; without it ``x/`` is. If both exist, ``x.lance`` is used and the other is reported. Directories
  whose names start with ``_`` or ``.`` are not tables. New tables are created as ``x.lance`` with the marker ``.lance-reserved``
  until data is written. The marker ``.lance-deregistered`` hides a deregistered table; its data stays, and RegisterTable shows the
  table again. No marker is written or removed in a subdirectory that is a symbolic link (403): change the link itself.
- A subdirectory that may not be entered, a prefix that an object store denies (403), or a link that cannot be followed (permissions, a
  loop), is an undescribed table: it is not absent, keeps its record, and the crawl names its path. A link to nothing is absent.
- The directory is a path or a URI: ``file:``, ``s3://``, ``gs://``, ``az://``, ``abfss://``, ``hdfs://``, with Lance's own storage
  options in ``dir.storage.*``. Google Cloud Storage needs the extra ``gcs``, and Azure ``azure``. A relative path starts at the
  directory of the configuration file, or at the working directory if there is no such file.
- A directory cannot store locations outside itself: they are Unsupported, and so is altering. It does not store the properties of a
  declaration, which is accepted without them, as pylance does; in a namespace of a manifest they are stored. Without a namespace,
  ``x`` is only at ``x.lance`` or ``x``. A mirror into a directory refuses other locations in its plan (``no_location``).
- If pylance has created a ``__manifest``, its child namespaces and its tables are read, too; its tables may be anywhere below the
  directory. ``dir.manifest_enabled = true`` also creates namespaces; ``false`` ignores the manifest. Tables in a namespace are
  registered at a location below the directory; without a location pylance chooses one. pylance drops the properties of a registered
  table. Manifests were tested with those that pylance 14 writes.
- A table of the manifest takes precedence over a directory of its name, as V2 of the directory namespace's spec says. The crawl reports
  the hidden directory. pylance 14 does so with ``dir_listing_enabled = false``; by default it opens ``x.lance``.
- The metadata of the manifest are the properties of the directory itself. They are read only.
- A manifest with columns of an extension (such as partitioned namespaces) is read; a write is Unsupported: pylance 14 would remove
  them.
- In a directory with a manifest, a subdirectory without the suffix ``.lance`` belongs to the manifest if its name starts with eight
  hexadecimal digits and ``_``, or if it contains a table of the manifest. It is then not a table itself.

``DirNamespace`` is the class for ``lance_namespace.connect("federator_connectors.dir.DirNamespace", {...})``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from federator.connector import Capabilities, Connector, LocationRules
from federator.connector.storage import is_local_root
from federator.lance.lazy_facade import lazy_facade_class
from federator.model import canonical_location
from federator_connectors._dir.catalog import DirCatalog
from federator_connectors._dir.settings import OFF, ON, DirSettings
from federator_connectors._dir.subdirectories import NAMES

#: pylance's manifest has no limit for nesting; object ids need one
_MAX_DEPTH = 64


class DirConnector(Connector[DirSettings]):
    """The connector of directories."""

    impl = "dir"
    settings_type = DirSettings
    capabilities = Capabilities(
        min_depth=0,
        max_depth=_MAX_DEPTH,
        levels=("namespace",),
        names=NAMES,
        can_alter=False,
        keeps_properties=False,
        keeps_comment=False,
        makes_location=True,
        reports_unwritten=True,
    )

    def capabilities_for(self, settings: DirSettings) -> Capabilities:
        # An object store overwrites the marker of a declared table.
        server = None if is_local_root(settings.root_uri) else canonical_location(settings.root_uri)
        capabilities = replace(
            self.capabilities, locations=LocationRules(directory=settings.root_uri), declarations_race_in=server
        )
        if settings.manifest_enabled == OFF:
            return replace(capabilities, max_depth=0, levels=())
        if settings.manifest_enabled == ON:
            # The manifest joins the names of an object id with a dollar sign.
            names = replace(NAMES, pattern=r"(?!.*\$)" + NAMES.pattern)
            return replace(capabilities, names=names, creates_namespaces_at=frozenset(range(1, _MAX_DEPTH + 1)))
        return capabilities

    def open(self, source: str, settings: DirSettings) -> DirCatalog:
        return DirCatalog(source, settings)

    def crawl_concurrency(self, properties: Mapping[str, str]) -> int:  # noqa: ARG002
        # A directory is one shard.
        return 1


CONNECTOR = DirConnector()
# The class DirNamespace of this module, made at its first use.
__getattr__ = lazy_facade_class(__name__, CONNECTOR, "DirNamespace")
