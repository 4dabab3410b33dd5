"""Tables of the service: runs, audit, leases, requests, notifications, metrics, tokens, sessions and the search index.

The module of ``store/`` with the name of a table reads and writes it, and explains its columns. Times are in seconds since the epoch.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, PrimaryKeyConstraint, SmallInteger, Table, Text
from sqlalchemy.dialects.postgresql import TSVECTOR

from federator.store.tables.base import ByteOrderedText, RowId, metadata

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

# The result of a run for one source.
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

# A stage of a run, for one subject: a source, a mirror, a storage root or a report.
run_stage = Table(
    "run_stage", metadata,
    Column("run_id", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("detail", Text),
    Column("started_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("calls", Integer),
    Column("errors", Integer),
    Column("plan", Text),  # digest of the plan that a stage "apply" applies
    PrimaryKeyConstraint("run_id", "stage", "subject"),
)  # fmt: skip

# Audit events in the transaction that they are about. Sealing moves them to ``audit_event``.
audit_outbox = Table(
    "audit_outbox", metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("event", Text, nullable=False),
)  # fmt: skip

# The chain: ``event`` is the sealed JSON, ``previous`` the digest of the event before.
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

# A recorded head; ``anchored_at`` is set once it was published.
audit_head = Table(
    "audit_head", metadata,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("digest", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("key", Text),
    Column("signature", Text),
    Column("anchored_at", Double),
)  # fmt: skip

# ``token`` is the fencing token, which each new holder increases.
lease = Table(
    "lease", metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("expires_at", Double, nullable=False),
)  # fmt: skip

# ``files`` is JSON: the names and sizes of the files in ``directory``.
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

# The state of each job: whether it is paused, and its last run.
schedule_state = Table(
    "schedule_state", metadata,
    Column("job", Text, primary_key=True),
    Column("paused", SmallInteger, nullable=False, server_default="0"),
    Column("last_run_id", Text),
    Column("last_started_at", Double),
)  # fmt: skip

# A queued demand for a run or a control action. ``argument`` is JSON.
request = Table(
    "request", metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("kind", Text, nullable=False),
    Column("argument", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("run_id", Text),
    Column("created_at", Double, nullable=False),
    Index("ix_request_state", "state", "id"),
)  # fmt: skip

# The outbox of notifications: events that no channel was matched with yet.
notice = Table(
    "notice", metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("event", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("source", Text),
    Column("mirror", Text),
    Column("run_id", Text),
    Column("subject", Text, nullable=False),
    Column("message", Text, nullable=False),
)  # fmt: skip

# ``grouped`` is the key of its group of notices, ``body`` its content as JSON.
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

# Calls to catalogs by duration: ``bucket`` is the upper bound of the duration, as in the metric.
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

# Single values of the deployment, such as its fingerprint.
deployment = Table(
    "deployment", metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)  # fmt: skip

# An API token; ``digest`` is the SHA-256 of its secret.
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

# A session of a browser; ``digest`` is the SHA-256 of its cookie.
session = Table(
    "session", metadata,
    Column("digest", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role_values", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("used_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("authenticated_at", Double),
    Index("ix_session_name", "name", "created_at"),
)  # fmt: skip

# What a principal hides in its own list of what needs attention, while the entry has this digest, until a time.
snooze = Table(
    "snooze", metadata,
    Column("principal", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("until", Double, nullable=False),
    PrimaryKeyConstraint("principal", "key"),
)  # fmt: skip

# Only the migration knows ``search_words``: the FTS5 table over ``words``, or the GIN index on PostgreSQL.
search_entry = Table(
    "search_entry", metadata,
    Column("id", RowId, primary_key=True, autoincrement=False),
    Column("source", ByteOrderedText, nullable=False),
    Column("path", ByteOrderedText, nullable=False),
    Column("words", Text().with_variant(TSVECTOR(), "postgresql"), nullable=False),
    Index("ix_search_entry_path", "source", "path"),
)  # fmt: skip

#: the distinct words of names (``store/vocabulary.py``)
search_vocabulary = Table(
    "search_vocabulary", metadata,
    Column("word", ByteOrderedText, primary_key=True),
    sqlite_with_rowid=False,
)  # fmt: skip
