"""Roots: their scans, the tables and the gaps that these found; the position of drift detection."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "root",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("scanned_at", sa.Double(), nullable=False),
        sa.Column("directories", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "root_gap",
        sa.Column("root", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("root", "place"),
    )
    op.create_table(
        "root_table",
        sa.Column("root", sa.Text(), nullable=False),
        sa.Column("canonical", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("root", "canonical"),
    )
    op.create_index("ix_root_table_canonical", "root_table", ["canonical"], unique=False)
    op.create_table(
        "drift_seen",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_index("ix_ledger_updated", "ledger", ["updated_at"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_ledger_updated", table_name="ledger")
    op.drop_table("drift_seen")
    op.drop_index("ix_root_table_canonical", table_name="root_table")
    op.drop_table("root_table")
    op.drop_table("root_gap")
    op.drop_table("root")
