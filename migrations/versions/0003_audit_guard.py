"""Sealed audit events can be neither changed nor deleted, and the heads of their chain are kept with their signatures."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_REFUSAL = "sealed audit events are neither changed nor deleted"

# A REPLACE deletes without the trigger of DELETE, so an insertion onto a number that is taken is refused as well.
_SQLITE = {
    "update": "BEFORE UPDATE ON audit_event",
    "delete": "BEFORE DELETE ON audit_event",
    "replace": "BEFORE INSERT ON audit_event WHEN EXISTS (SELECT 1 FROM audit_event WHERE seq = NEW.seq)",
}

_FUNCTION = f"""
CREATE FUNCTION audit_event_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '{_REFUSAL}';
END $$
"""


def upgrade() -> None:
    op.create_table(
        "audit_head",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("signature", sa.Text(), nullable=True),
        sa.Column("anchored_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index("ix_audit_event_kind", "audit_event", ["kind", "seq"], unique=False)
    if op.get_bind().dialect.name == "sqlite":
        for name, when in _SQLITE.items():
            op.execute(f"CREATE TRIGGER audit_event_{name} {when} BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END")
        return
    op.execute(_FUNCTION)
    op.execute(
        "CREATE TRIGGER audit_event_rows BEFORE UPDATE OR DELETE ON audit_event "
        "FOR EACH ROW EXECUTE FUNCTION audit_event_guard()"
    )
    op.execute(
        "CREATE TRIGGER audit_event_table BEFORE TRUNCATE ON audit_event FOR EACH STATEMENT EXECUTE FUNCTION audit_event_guard()"
    )


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for name in _SQLITE:
            op.execute(f"DROP TRIGGER audit_event_{name}")
    else:
        op.execute("DROP TRIGGER audit_event_rows ON audit_event")
        op.execute("DROP TRIGGER audit_event_table ON audit_event")
        op.execute("DROP FUNCTION audit_event_guard()")
    op.drop_index("ix_audit_event_kind", table_name="audit_event")
    op.drop_table("audit_head")
