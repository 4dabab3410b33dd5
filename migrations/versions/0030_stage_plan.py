"""The plan that a stage applies: a sync that applies a plan is its application."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("run_stage", sa.Column("plan", sa.Text()))


def downgrade() -> None:
    op.drop_column("run_stage", "plan")
