"""Pending publications: direct writes that every process sees before they are in a revision."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pending_publication",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("is_table", sa.SmallInteger(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("observed_at", sa.Double(), nullable=False),
        sa.Column("record", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("source", "is_table", "path"),
    )


def downgrade() -> None:
    op.drop_table("pending_publication")
