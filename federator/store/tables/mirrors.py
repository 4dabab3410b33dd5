"""Tables of the mirrors: ledger, plans, approvals and journal. Paths are path keys; times are in seconds since the epoch."""

from __future__ import annotations

from sqlalchemy import Column, Double, Index, Integer, PrimaryKeyConstraint, SmallInteger, Table, Text, text

from federator.store.tables.base import metadata

# One owned object. ``op_id`` and ``run_id`` are of the last write to it, and the digests of the records and the mirror's mapping then.
# ``declared`` is JSON: the part of the target's record that comes from the mirror.
ledger = Table(
    "ledger", metadata,
    Column("mirror", Text, nullable=False),
    Column("origin_source", Text, nullable=False),
    Column("origin_path", Text, nullable=False),
    Column("target_source", Text, nullable=False),
    Column("target_path", Text, nullable=False),
    Column("is_table", SmallInteger, nullable=False),
    Column("op_id", Text, nullable=False),
    Column("native_id", Text),
    Column("location", Text),
    Column("canonical", Text),
    Column("origin_digest", Text),
    Column("target_digest", Text),
    Column("mapping_digest", Text),
    Column("declared", Text),
    Column("run_id", Text, nullable=False),
    Column("updated_at", Double, nullable=False),
    PrimaryKeyConstraint("mirror", "origin_source", "origin_path", "target_path", "is_table"),
    Index("ix_ledger_origin", "origin_source", "origin_path"),
    Index("ix_ledger_target", "target_source", "target_path"),
    Index("ix_ledger_updated", "updated_at"),
    Index("ix_ledger_place", "target_source", "canonical"),
)  # fmt: skip

# ``body`` is the plan as JSON, ``guarded`` the digest of its guarded set.
plan = Table(
    "plan", metadata,
    Column("digest", Text, primary_key=True),
    Column("mirror", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("decided_at", Double),
    Column("decided_by", Text),
    Column("guarded", Text),
    Column("decision_comment", Text),
    Index("ix_plan_mirror", "mirror", "created_at"),
)  # fmt: skip

# The approval of a change: ``evidence`` is the change's digest, ``guards`` (JSON) held it, ``plan`` is the plan that was approved.
approval = Table(
    "approval", metadata,
    Column("mirror", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("guards", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("approved_at", Double, nullable=False),
    PrimaryKeyConstraint("mirror", "evidence"),
)  # fmt: skip

# An intent and its outcome (``store.journal.StoredIntent``). ``seq`` is the number of the change in its plan, ``saved`` the native
# object that a recreate replaces, and ``writer`` the lease of the process of a direct write.
journal = Table(
    "journal", metadata,
    Column("op_id", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("mirror", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("action", Text, nullable=False),
    Column("target_source", Text, nullable=False),
    Column("target_path", Text, nullable=False),
    Column("origin_path", Text),
    Column("change", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("code", Text),
    Column("message", Text),
    Column("intent_at", Double, nullable=False),
    Column("outcome_at", Double),
    Column("saved", Text),
    Column("writer", Text),
    Index("ix_journal_open", "mirror", sqlite_where=text("state = 'intent'"), postgresql_where=text("state = 'intent'")),
    Index("ix_journal_guard", "mirror", "intent_at"),
    Index("ix_journal_run", "run_id", "seq"),
    Index("ix_journal_plan", "plan"),
    Index("ix_journal_target", "target_source", "target_path"),
)  # fmt: skip
