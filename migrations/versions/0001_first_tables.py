"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "absence",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("misses", sa.Text(), nullable=False),
        sa.Column("config_digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("source", "path"),
    )
    op.create_table(
        "audit_event",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index("ix_audit_event_run", "audit_event", ["run_id", "seq"], unique=False)
    op.create_index("ix_audit_event_subject", "audit_event", ["subject", "seq"], unique=False)
    op.create_table(
        "audit_outbox",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "coverage",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("presence", sa.Text(), nullable=False),
        sa.Column("presence_code", sa.Integer(), nullable=True),
        sa.Column("presence_reason", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("detail_code", sa.Integer(), nullable=True),
        sa.Column("detail_reason", sa.Text(), nullable=False),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("valid_from", sa.Integer(), nullable=False),
        sa.Column("valid_to", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_coverage_closed",
        "coverage",
        ["source", "valid_to"],
        unique=False,
        sqlite_where=sa.text("valid_to IS NOT NULL"),
        postgresql_where=sa.text("valid_to IS NOT NULL"),
    )
    op.create_index("ix_coverage_revision", "coverage", ["valid_from", "source"], unique=False)
    op.create_index(
        "ux_coverage_open",
        "coverage",
        ["source", "namespace"],
        unique=True,
        sqlite_where=sa.text("valid_to IS NULL"),
        postgresql_where=sa.text("valid_to IS NULL"),
    )
    op.create_table(
        "dataset",
        sa.Column("canonical", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.Column("rows", sa.BigInteger(), nullable=True),
        sa.Column("fragments", sa.Integer(), nullable=True),
        sa.Column("schema", sa.Text(), nullable=True),
        sa.Column("checked_at", sa.Double(), nullable=False),
        sa.Column("checked_through", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("canonical"),
    )
    op.create_index("ix_dataset_checked", "dataset", ["checked_at"], unique=False)
    op.create_table(
        "deployment",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "journal",
        sa.Column("op_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("mirror", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("target_source", sa.Text(), nullable=False),
        sa.Column("target_path", sa.Text(), nullable=False),
        sa.Column("origin_path", sa.Text(), nullable=True),
        sa.Column("change", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("intent_at", sa.Double(), nullable=False),
        sa.Column("outcome_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("op_id"),
    )
    op.create_index("ix_journal_guard", "journal", ["mirror", "intent_at"], unique=False)
    op.create_index(
        "ix_journal_open",
        "journal",
        ["mirror"],
        unique=False,
        sqlite_where=sa.text("state = 'intent'"),
        postgresql_where=sa.text("state = 'intent'"),
    )
    op.create_index("ix_journal_run", "journal", ["run_id", "seq"], unique=False)
    op.create_table(
        "lease",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "ledger",
        sa.Column("mirror", sa.Text(), nullable=False),
        sa.Column("origin_source", sa.Text(), nullable=False),
        sa.Column("origin_path", sa.Text(), nullable=False),
        sa.Column("target_source", sa.Text(), nullable=False),
        sa.Column("target_path", sa.Text(), nullable=False),
        sa.Column("is_table", sa.SmallInteger(), nullable=False),
        sa.Column("op_id", sa.Text(), nullable=False),
        sa.Column("native_id", sa.Text(), nullable=True),
        sa.Column("location", sa.Text(), nullable=True),
        sa.Column("origin_digest", sa.Text(), nullable=True),
        sa.Column("target_digest", sa.Text(), nullable=True),
        sa.Column("mapping_digest", sa.Text(), nullable=True),
        sa.Column("declared", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("mirror", "origin_source", "origin_path", "target_path", "is_table"),
    )
    op.create_index("ix_ledger_origin", "ledger", ["origin_source", "origin_path"], unique=False)
    op.create_index("ix_ledger_target", "ledger", ["target_source", "target_path"], unique=False)
    op.create_table(
        "plan",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("mirror", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("decided_at", sa.Double(), nullable=True),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index("ix_plan_mirror", "plan", ["mirror", "created_at"], unique=False)
    op.create_table(
        "record",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("is_table", sa.SmallInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=True),
        sa.Column("canonical", sa.Text(), nullable=True),
        sa.Column("properties", sa.Text(), nullable=False),
        sa.Column("doc", sa.Text(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("schema", sa.Text(), nullable=True),
        sa.Column("native_id", sa.Text(), nullable=True),
        sa.Column("version", sa.Text(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("observed_at", sa.Double(), nullable=True),
        sa.Column("valid_from", sa.Integer(), nullable=False),
        sa.Column("valid_to", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_record_canonical",
        "record",
        ["canonical"],
        unique=False,
        sqlite_where=sa.text("valid_to IS NULL"),
        postgresql_where=sa.text("valid_to IS NULL"),
    )
    op.create_index(
        "ix_record_children",
        "record",
        ["source", "parent", "path", "is_table"],
        unique=False,
        sqlite_where=sa.text("valid_to IS NULL"),
        postgresql_where=sa.text("valid_to IS NULL"),
    )
    op.create_index(
        "ix_record_closed",
        "record",
        ["source", "valid_to"],
        unique=False,
        sqlite_where=sa.text("valid_to IS NOT NULL"),
        postgresql_where=sa.text("valid_to IS NOT NULL"),
    )
    op.create_index("ix_record_revision", "record", ["valid_from", "source"], unique=False)
    op.create_index(
        "ux_record_open",
        "record",
        ["source", "is_table", "path"],
        unique=True,
        sqlite_where=sa.text("valid_to IS NULL"),
        postgresql_where=sa.text("valid_to IS NULL"),
    )
    op.create_table(
        "request",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("argument", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_request_state", "request", ["state", "id"], unique=False)
    op.create_table(
        "revision",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("read_began_at", sa.Double(), nullable=False),
        sa.Column("published_at", sa.Double(), nullable=True),
        sa.Column("added", sa.Integer(), server_default="0", nullable=False),
        sa.Column("changed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("removed", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("source", "number"),
    )
    op.create_index("ix_revision_run", "revision", ["run_id"], unique=False)
    op.create_table(
        "run",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.Column("progress", sa.Text(), nullable=True),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_run_started", "run", ["started_at"], unique=False)
    op.create_table(
        "run_source",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("tables", sa.Integer(), server_default="0", nullable=False),
        sa.Column("namespaces", sa.Integer(), server_default="0", nullable=False),
        sa.Column("added", sa.Integer(), server_default="0", nullable=False),
        sa.Column("changed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("removed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failed_namespaces", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("run_id", "source"),
    )
    op.create_table(
        "schedule_state",
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("paused", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("last_run_id", sa.Text(), nullable=True),
        sa.Column("last_started_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("job"),
    )
    op.create_table(
        "source",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("impl", sa.Text(), nullable=False),
        sa.Column("config_digest", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), server_default="0", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("cursor", sa.Text(), nullable=True),
        sa.Column("crawled_at", sa.Double(), nullable=True),
        sa.Column("published_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )


def downgrade() -> None:
    op.drop_table("source")
    op.drop_table("schedule_state")
    op.drop_table("run_source")
    op.drop_index("ix_run_started", table_name="run")
    op.drop_table("run")
    op.drop_index("ix_revision_run", table_name="revision")
    op.drop_table("revision")
    op.drop_index("ix_request_state", table_name="request")
    op.drop_table("request")
    op.drop_index(
        "ux_record_open",
        table_name="record",
        sqlite_where=sa.text("valid_to IS NULL"),
        postgresql_where=sa.text("valid_to IS NULL"),
    )
    op.drop_index("ix_record_revision", table_name="record")
    op.drop_index(
        "ix_record_closed",
        table_name="record",
        sqlite_where=sa.text("valid_to IS NOT NULL"),
        postgresql_where=sa.text("valid_to IS NOT NULL"),
    )
    op.drop_index(
        "ix_record_children",
        table_name="record",
        sqlite_where=sa.text("valid_to IS NULL"),
        postgresql_where=sa.text("valid_to IS NULL"),
    )
    op.drop_index(
        "ix_record_canonical",
        table_name="record",
        sqlite_where=sa.text("valid_to IS NULL"),
        postgresql_where=sa.text("valid_to IS NULL"),
    )
    op.drop_table("record")
    op.drop_index("ix_plan_mirror", table_name="plan")
    op.drop_table("plan")
    op.drop_index("ix_ledger_target", table_name="ledger")
    op.drop_index("ix_ledger_origin", table_name="ledger")
    op.drop_table("ledger")
    op.drop_table("lease")
    op.drop_index("ix_journal_run", table_name="journal")
    op.drop_index(
        "ix_journal_open",
        table_name="journal",
        sqlite_where=sa.text("state = 'intent'"),
        postgresql_where=sa.text("state = 'intent'"),
    )
    op.drop_index("ix_journal_guard", table_name="journal")
    op.drop_table("journal")
    op.drop_table("deployment")
    op.drop_index("ix_dataset_checked", table_name="dataset")
    op.drop_table("dataset")
    op.drop_index(
        "ux_coverage_open",
        table_name="coverage",
        sqlite_where=sa.text("valid_to IS NULL"),
        postgresql_where=sa.text("valid_to IS NULL"),
    )
    op.drop_index("ix_coverage_revision", table_name="coverage")
    op.drop_index(
        "ix_coverage_closed",
        table_name="coverage",
        sqlite_where=sa.text("valid_to IS NOT NULL"),
        postgresql_where=sa.text("valid_to IS NOT NULL"),
    )
    op.drop_table("coverage")
    op.drop_table("audit_outbox")
    op.drop_index("ix_audit_event_subject", table_name="audit_event")
    op.drop_index("ix_audit_event_run", table_name="audit_event")
    op.drop_table("audit_event")
    op.drop_table("absence")
