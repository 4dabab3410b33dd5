"""Approvals: of changes with their evidence, so that a plan that is made again finds them; each plan names its guarded set."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("plan", sa.Column("guarded", sa.Text))
    op.create_table(
        "approval",
        sa.Column("mirror", sa.Text, nullable=False),
        sa.Column("evidence", sa.Text, nullable=False),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("guards", sa.Text, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("approved_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("mirror", "evidence"),
    )


def downgrade() -> None:
    op.drop_table("approval")
    op.drop_column("plan", "guarded")
