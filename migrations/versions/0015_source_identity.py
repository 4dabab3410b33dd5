"""Identities of sources, and what each revision lost at once."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "source_identity",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.Column("confirmed_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("source", "scope", "value"),
    )
    op.add_column("revision", sa.Column("identity", sa.Text(), nullable=True))
    op.add_column("revision", sa.Column("tables", sa.Integer(), nullable=True))
    op.add_column("revision", sa.Column("gone", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("revision", sa.Column("moved", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("revision", sa.Column("went_back", sa.Text(), nullable=True))


def downgrade() -> None:
    for column in ("went_back", "moved", "gone", "tables", "identity"):
        op.drop_column("revision", column)
    op.drop_table("source_identity")
