"""Tables of the crawls: sources, their revisions, and the objects and coverage of each revision.

A ``record`` or ``coverage`` row is valid for the source's revisions from ``valid_from`` up to, but not including, ``valid_to``. Rows of
a draft revision are already stored; a reader sees the source as of ``source.revision`` (``records.py``).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, PrimaryKeyConstraint, SmallInteger, Table, Text, text

from federator.store.tables.base import RowId, metadata

_OPEN = text("valid_to IS NULL")
_CLOSED = text("valid_to IS NOT NULL")

source = Table(
    "source", metadata,
    Column("name", Text, primary_key=True),
    Column("impl", Text, nullable=False),
    Column("config_digest", Text, nullable=False),
    Column("revision", Integer, nullable=False, server_default="0"),
    Column("state", Text, nullable=False),
    Column("message", Text),
    Column("cursor", Text),
    Column("crawled_at", Double),
    Column("published_at", Double),
    # The retention horizon: rows that only older revisions need were removed (retention.py).
    Column("horizon", Integer, nullable=False, server_default="0"),
    # The last full crawl: its start, and the digest of the configuration it used. Incremental crawls continue at ``cursor``.
    Column("full_at", Double),
    Column("full_config", Text),
)  # fmt: skip

revision = Table(
    "revision", metadata,
    Column("source", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("read_began_at", Double, nullable=False),
    Column("published_at", Double),
    Column("added", Integer, nullable=False, server_default="0"),
    Column("changed", Integer, nullable=False, server_default="0"),
    Column("removed", Integer, nullable=False, server_default="0"),
    # Of a crawl: the identity of the catalog; the number of tables in the previous revision, how many of them are absent (``gone``) or
    # have another location (``moved``); and why the change feed's history is a different one.
    Column("identity", Text),
    Column("tables", Integer),
    Column("gone", Integer, nullable=False, server_default="0"),
    Column("moved", Integer, nullable=False, server_default="0"),
    Column("went_back", Text),
    PrimaryKeyConstraint("source", "number"),
    Index("ix_revision_run", "run_id"),
)  # fmt: skip

# A part of a draft that a Spark task has written: the number of its records, and their folded digest.
draft_part = Table(
    "draft_part", metadata,
    Column("source", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("part", Integer, nullable=False),
    Column("records", Integer, nullable=False),
    Column("digest", BigInteger, nullable=False),
    # Number of the tables without a search entry.
    Column("unindexed", Integer, nullable=False),
    PrimaryKeyConstraint("source", "number", "part"),
)  # fmt: skip

# What each part of a source's identity was (``planning.identity``): ``scope`` and ``value`` are a part, ``state`` says whether it was
# accepted, or reported and not yet confirmed.
source_identity = Table(
    "source_identity", metadata,
    Column("source", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("confirmed_by", Text),
    PrimaryKeyConstraint("source", "scope", "value"),
)  # fmt: skip

record = Table(
    "record", metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("source", Text, nullable=False),
    Column("is_table", SmallInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("parent", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("location", Text),
    Column("canonical", Text),
    Column("properties", Text, nullable=False),
    Column("doc", Text),
    Column("owner", Text),
    Column("schema", Text),
    Column("native_id", Text),
    Column("version", Text),
    Column("problem", Text),
    Column("digest", Text, nullable=False),
    Column("observed_at", Double),
    Column("valid_from", Integer, nullable=False),
    Column("valid_to", Integer),
    Index("ux_record_open", "source", "is_table", "path", unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN),
    Index("ix_record_children", "source", "parent", "path", "is_table", sqlite_where=_OPEN, postgresql_where=_OPEN),
    Index("ix_record_canonical", "canonical", sqlite_where=_OPEN, postgresql_where=_OPEN),
    Index("ix_record_closed", "source", "valid_to", sqlite_where=_CLOSED, postgresql_where=_CLOSED),
    # By revision first: with the source first, planners would use this index to read the current state.
    Index("ix_record_revision", "valid_from", "source"),
)  # fmt: skip

# Objects that direct writes changed while a crawl held the source's lease, as they were observed afterwards.
pending_publication = Table(
    "pending_publication", metadata,
    Column("source", Text, nullable=False),
    Column("is_table", SmallInteger, nullable=False),
    Column("path", Text, nullable=False),
    Column("observed_at", Double, nullable=False),
    # JSON of the columns of ``record``; null if the object is absent.
    Column("record", Text),
    PrimaryKeyConstraint("source", "is_table", "path"),
)  # fmt: skip

coverage = Table(
    "coverage", metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("source", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("presence", Text, nullable=False),
    Column("presence_code", Integer),
    Column("presence_reason", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("detail_code", Integer),
    Column("detail_reason", Text, nullable=False),
    Column("records", Integer, nullable=False),
    Column("valid_from", Integer, nullable=False),
    Column("valid_to", Integer),
    # The revision in which a carried namespace was last read.
    Column("carried_from", Integer),
    Index("ux_coverage_open", "source", "namespace", unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN),
    Index("ix_coverage_closed", "source", "valid_to", sqlite_where=_CLOSED, postgresql_where=_CLOSED),
    Index("ix_coverage_revision", "valid_from", "source"),
)  # fmt: skip

# The misses of a table that a ledger names as origin: a JSON list of times.
absence = Table(
    "absence", metadata,
    Column("source", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("misses", Text, nullable=False),
    Column("config_digest", Text, nullable=False),
    PrimaryKeyConstraint("source", "path"),
)  # fmt: skip
