"""Change feeds: the last full crawl of a source, and what incremental crawls carried from which revision."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("source", sa.Column("full_at", sa.Double(), nullable=True))
    op.add_column("source", sa.Column("full_config", sa.Text(), nullable=True))
    op.add_column("coverage", sa.Column("carried_from", sa.Integer(), nullable=True))
    op.add_column("run_source", sa.Column("carried", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("run_source", sa.Column("full_because", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("run_source", "full_because")
    op.drop_column("run_source", "carried")
    op.drop_column("coverage", "carried_from")
    op.drop_column("source", "full_config")
    op.drop_column("source", "full_at")
