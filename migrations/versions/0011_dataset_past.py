"""History of verification states: since when each state holds, and the earlier ones."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The start of a state that is already stored is unknown. It is not later than the last inspection.
    op.add_column("dataset", sa.Column("since", sa.Double(), nullable=False, server_default="0"))
    op.execute("UPDATE dataset SET since = checked_at")
    op.create_table(
        "dataset_past",
        sa.Column("canonical", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("schema", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("canonical", "until"),
    )
    op.create_index("ix_dataset_past_until", "dataset_past", ["until"], unique=False)


def downgrade() -> None:
    op.drop_table("dataset_past")
    op.drop_column("dataset", "since")
