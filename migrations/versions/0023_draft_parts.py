"""Revisions: the parts that Spark tasks have written into a draft."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "draft_part",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("digest", sa.BigInteger(), nullable=False),
        sa.Column("unindexed", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("source", "number", "part"),
    )


def downgrade() -> None:
    op.drop_table("draft_part")
