"""Plans: the comment of a person's decision."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("plan", sa.Column("decision_comment", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("plan", "decision_comment")
