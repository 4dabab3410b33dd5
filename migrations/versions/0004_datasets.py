"""Datasets: the facts of their newest manifest, resolved location aliases, and drift between catalogs."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_OF_MANIFEST = {
    "size": sa.BigInteger(), "indices": sa.Integer(), "fingerprint": sa.Text(), "format": sa.Text(), "changed_at": sa.Double(),
}  # fmt: skip


def upgrade() -> None:
    for name, kind in _OF_MANIFEST.items():
        op.add_column("dataset", sa.Column(name, kind, nullable=True))
    op.create_table(
        "alias",
        sa.Column("canonical", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("canonical"),
    )
    op.create_index("ix_alias_place", "alias", ["place"], unique=False)
    op.create_table(
        "drift",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("other", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("first_seen", sa.Double(), nullable=False),
        sa.Column("last_seen", sa.Double(), nullable=False),
        sa.Column("resolved_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("kind", "subject", "other"),
    )


def downgrade() -> None:
    op.drop_table("drift")
    op.drop_index("ix_alias_place", table_name="alias")
    op.drop_table("alias")
    for name in _OF_MANIFEST:
        op.drop_column("dataset", name)
