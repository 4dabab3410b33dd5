"""Tables of the storage side: datasets with their verification states, scanned roots, and drift."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, PrimaryKeyConstraint, Table, Text

from federator.store.tables.base import metadata

dataset = Table(
    "dataset", metadata,
    Column("canonical", Text, nullable=False),
    Column("location", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("message", Text),
    Column("version", BigInteger),
    Column("rows", BigInteger),
    Column("fragments", Integer),
    Column("schema", Text),
    Column("checked_at", Double, nullable=False),
    Column("checked_through", Text, nullable=False),
    Column("size", BigInteger),
    Column("indices", Integer),
    Column("fingerprint", Text),
    Column("format", Text),
    Column("changed_at", Double),
    # When the location was first found with its current state and schema.
    Column("since", Double, nullable=False, server_default="0"),
    # The object store that the location is in, and the options with which it was opened, as a digest (store/stores.py).
    Column("access", Text, nullable=False, server_default=""),
    PrimaryKeyConstraint("canonical", "access"),
    Index("ix_dataset_checked", "checked_at"),
    Index("ix_dataset_state", "state"),
)  # fmt: skip

# An earlier verification state of a location: from the inspection at ``since`` to the one at ``until`` that found another state.
dataset_past = Table(
    "dataset_past", metadata,
    Column("canonical", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("message", Text),
    Column("schema", Text),
    Column("fingerprint", Text),
    Column("since", Double, nullable=False),
    Column("until", Double, nullable=False),
    Column("access", Text, nullable=False, server_default=""),
    # Of the last inspection that found this state.
    Column("version", BigInteger),
    Column("rows", BigInteger),
    Column("checked_at", Double),
    PrimaryKeyConstraint("canonical", "access", "until"),
    Index("ix_dataset_past_until", "until"),
)  # fmt: skip

# The object store of a source, and its access to it (``store.stores.SourceStore``).
source_store = Table(
    "source_store", metadata,
    Column("source", Text, primary_key=True),
    Column("store", Text, nullable=False),
    Column("access", Text, nullable=False, server_default=""),
)  # fmt: skip

# A declared canonical location that a configured location alias leads to another one, which ``place`` has.
alias = Table(
    "alias", metadata,
    Column("canonical", Text, primary_key=True),
    Column("place", Text, nullable=False),
    Index("ix_alias_place", "place"),
)  # fmt: skip

# Open and resolved drift (``model.drift.Drift``).
drift = Table(
    "drift", metadata,
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("other", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("first_seen", Double, nullable=False),
    Column("last_seen", Double, nullable=False),
    Column("resolved_at", Double),
    PrimaryKeyConstraint("kind", "subject", "other"),
)  # fmt: skip

# The last scan of a configured storage root. ``directories`` is their number in it.
root = Table(
    "root", metadata,
    Column("name", Text, primary_key=True),
    Column("location", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("message", Text),
    Column("scanned_at", Double, nullable=False),
    Column("directories", BigInteger, nullable=False),
)  # fmt: skip

# A directory that the last scan of a root could not list. Nothing below it is proven absent.
root_gap = Table(
    "root_gap", metadata,
    Column("root", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("message", Text, nullable=False),
    PrimaryKeyConstraint("root", "place"),
)  # fmt: skip

# A table that a scan of a root has found.
root_table = Table(
    "root_table", metadata,
    Column("root", Text, nullable=False),
    Column("canonical", Text, nullable=False),
    Column("location", Text, nullable=False),
    Column("seen_at", Double, nullable=False),
    PrimaryKeyConstraint("root", "canonical"),
    Index("ix_root_table_canonical", "canonical"),
)  # fmt: skip

# The watermark of the last drift detection: a revision per source, a digest per mirror.
drift_seen = Table(
    "drift_seen", metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)  # fmt: skip
