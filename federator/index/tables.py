"""The index's tables, as SQLAlchemy Core knows them. ``migrations/`` makes them; a test holds the two together.

Times are seconds since the epoch, as REAL. Paths are in text form (``federator.model.path_key``). JSON is text, written canonically.

A ``record`` or ``coverage`` row is valid for the source's revisions from ``valid_from`` up to, not including, ``valid_to``. Rows of a
revision that is not published yet are there already; a reader sees the source as of ``source.revision`` (``records.py``).
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)  # fmt: skip
from sqlalchemy.dialects.postgresql import TSVECTOR

metadata = MetaData()

# SQLite numbers rows only in an INTEGER primary key.
_Id = BigInteger().with_variant(Integer, "sqlite")
# In the order of its bytes, whatever the database's language.
_Bytes = Text().with_variant(Text(collation="C"), "postgresql")
OPEN = text("valid_to IS NULL")
CLOSED = text("valid_to IS NOT NULL")

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
    # The oldest revision whose state is whole: what only older ones had was removed (retention.py).
    Column("horizon", Integer, nullable=False, server_default="0"),
    # The last crawl that read everything: when it began, and the configuration it was made with. ``cursor`` goes on from there.
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
    # Of a crawl: which catalog answered; the tables of the revision before, how many of them are absent or have another location; and
    # why the feed's past is another one.
    Column("identity", Text),
    Column("tables", Integer),
    Column("gone", Integer, nullable=False, server_default="0"),
    Column("moved", Integer, nullable=False, server_default="0"),
    Column("went_back", Text),
    PrimaryKeyConstraint("source", "number"),
    Index("ix_revision_run", "run_id"),
)  # fmt: skip

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
    Column("id", _Id, primary_key=True, autoincrement=True),
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
    Index("ux_record_open", "source", "is_table", "path", unique=True, sqlite_where=OPEN, postgresql_where=OPEN),
    Index("ix_record_children", "source", "parent", "path", "is_table", sqlite_where=OPEN, postgresql_where=OPEN),
    Index("ix_record_canonical", "canonical", sqlite_where=OPEN, postgresql_where=OPEN),
    Index("ix_record_closed", "source", "valid_to", sqlite_where=CLOSED, postgresql_where=CLOSED),
    # By revision first: led by the source, it would look like a way to read the current state.
    Index("ix_record_revision", "valid_from", "source"),
)  # fmt: skip

coverage = Table(
    "coverage", metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
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
    # The revision in which a carried namespace was read.
    Column("carried_from", Integer),
    Index("ux_coverage_open", "source", "namespace", unique=True, sqlite_where=OPEN, postgresql_where=OPEN),
    Index("ix_coverage_closed", "source", "valid_to", sqlite_where=CLOSED, postgresql_where=CLOSED),
    Index("ix_coverage_revision", "valid_from", "source"),
)  # fmt: skip

absence = Table(
    "absence", metadata,
    Column("source", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("misses", Text, nullable=False),
    Column("config_digest", Text, nullable=False),
    PrimaryKeyConstraint("source", "path"),
)  # fmt: skip

dataset = Table(
    "dataset", metadata,
    Column("canonical", Text, primary_key=True),
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
    # When it was first found as it is, in state and schema.
    Column("since", Double, nullable=False, server_default="0"),
    Index("ix_dataset_checked", "checked_at"),
    Index("ix_dataset_state", "state"),
)  # fmt: skip

# How a place was found before it was as ``dataset`` has it: from the look at ``since`` to the one at ``until`` that found it otherwise.
dataset_past = Table(
    "dataset_past", metadata,
    Column("canonical", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("message", Text),
    Column("schema", Text),
    Column("fingerprint", Text),
    Column("since", Double, nullable=False),
    Column("until", Double, nullable=False),
    PrimaryKeyConstraint("canonical", "until"),
    Index("ix_dataset_past_until", "until"),
)  # fmt: skip

alias = Table(
    "alias", metadata,
    Column("canonical", Text, primary_key=True),
    Column("place", Text, nullable=False),
    Index("ix_alias_place", "place"),
)  # fmt: skip

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

root = Table(
    "root", metadata,
    Column("name", Text, primary_key=True),
    Column("location", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("message", Text),
    Column("scanned_at", Double, nullable=False),
    Column("directories", BigInteger, nullable=False),
)  # fmt: skip

# What the last scan of a root could not list: nothing below such a place is proven gone.
root_gap = Table(
    "root_gap", metadata,
    Column("root", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("message", Text, nullable=False),
    PrimaryKeyConstraint("root", "place"),
)  # fmt: skip

root_table = Table(
    "root_table", metadata,
    Column("root", Text, nullable=False),
    Column("canonical", Text, nullable=False),
    Column("location", Text, nullable=False),
    Column("seen_at", Double, nullable=False),
    PrimaryKeyConstraint("root", "canonical"),
    Index("ix_root_table_canonical", "canonical"),
)  # fmt: skip

# Up to where drift has been looked through: a revision by source, a digest by mirror.
drift_seen = Table(
    "drift_seen", metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)  # fmt: skip

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
    Index("ix_plan_mirror", "mirror", "created_at"),
)  # fmt: skip

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
    Index("ix_journal_open", "mirror", sqlite_where=text("state = 'intent'"), postgresql_where=text("state = 'intent'")),
    Index("ix_journal_guard", "mirror", "intent_at"),
    Index("ix_journal_run", "run_id", "seq"),
    Index("ix_journal_target", "target_source", "target_path"),
)  # fmt: skip

run = Table(
    "run", metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("progress", Text),
    Column("summary", Text),
    Column("error", Text),
    Index("ix_run_started", "started_at"),
)  # fmt: skip

run_source = Table(
    "run_source", metadata,
    Column("run_id", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("revision", Integer),
    Column("state", Text, nullable=False),
    Column("message", Text),
    Column("tables", Integer, nullable=False, server_default="0"),
    Column("namespaces", Integer, nullable=False, server_default="0"),
    Column("added", Integer, nullable=False, server_default="0"),
    Column("changed", Integer, nullable=False, server_default="0"),
    Column("removed", Integer, nullable=False, server_default="0"),
    Column("failed_namespaces", Integer, nullable=False, server_default="0"),
    Column("carried", Integer, nullable=False, server_default="0"),
    Column("full_because", Text),
    PrimaryKeyConstraint("run_id", "source"),
)  # fmt: skip

audit_outbox = Table(
    "audit_outbox", metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("event", Text, nullable=False),
)  # fmt: skip

audit_event = Table(
    "audit_event", metadata,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("run_id", Text),
    Column("subject", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Index("ix_audit_event_subject", "subject", "seq"),
    Index("ix_audit_event_run", "run_id", "seq"),
    Index("ix_audit_event_kind", "kind", "seq"),
)  # fmt: skip

audit_head = Table(
    "audit_head", metadata,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("digest", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("key", Text),
    Column("signature", Text),
    Column("anchored_at", Double),
)  # fmt: skip

lease = Table(
    "lease", metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("expires_at", Double, nullable=False),
)  # fmt: skip

report = Table(
    "report", metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("made_at", Double, nullable=False),
    Column("directory", Text, nullable=False),
    Column("files", Text, nullable=False),
    Index("ix_report_name", "name", "id"),
)  # fmt: skip

schedule_state = Table(
    "schedule_state", metadata,
    Column("job", Text, primary_key=True),
    Column("paused", SmallInteger, nullable=False, server_default="0"),
    Column("last_run_id", Text),
    Column("last_started_at", Double),
)  # fmt: skip

request = Table(
    "request", metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("kind", Text, nullable=False),
    Column("argument", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("run_id", Text),
    Column("created_at", Double, nullable=False),
    Index("ix_request_state", "state", "id"),
)  # fmt: skip

notice = Table(
    "notice", metadata,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("event", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("source", Text),
    Column("mirror", Text),
    Column("run_id", Text),
    Column("subject", Text, nullable=False),
    Column("message", Text, nullable=False),
)  # fmt: skip

notification = Table(
    "notification", metadata,
    Column("id", Text, primary_key=True),
    Column("channel", Text, nullable=False),
    Column("grouped", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("events", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("due_at", Double, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("error", Text),
    Column("ended_at", Double),
    Index("ix_notification_state", "state", "due_at"),
)  # fmt: skip

catalog_call = Table(
    "catalog_call", metadata,
    Column("source", Text, nullable=False),
    Column("operation", Text, nullable=False),
    Column("bucket", Text, nullable=False),
    Column("calls", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
    PrimaryKeyConstraint("source", "operation", "bucket"),
)  # fmt: skip

catalog_error = Table(
    "catalog_error", metadata,
    Column("source", Text, nullable=False),
    Column("operation", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("errors", BigInteger, nullable=False),
    PrimaryKeyConstraint("source", "operation", "code"),
)  # fmt: skip

deployment = Table(
    "deployment", metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)  # fmt: skip

token = Table(
    "token", metadata,
    Column("name", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
    Column("revoked_by", Text),
    Index("ux_token_digest", "digest", unique=True),
)  # fmt: skip

# FTS5's table, or the GIN index, over ``words`` is the migration's own: ``search_words``.
search_entry = Table(
    "search_entry", metadata,
    Column("id", _Id, primary_key=True, autoincrement=False),
    Column("source", _Bytes, nullable=False),
    Column("path", _Bytes, nullable=False),
    Column("words", Text().with_variant(TSVECTOR(), "postgresql"), nullable=False),
    Index("ix_search_entry_path", "source", "path"),
)  # fmt: skip
