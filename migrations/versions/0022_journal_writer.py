"""Journal: the lease of the process that made a direct write."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("journal", sa.Column("writer", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("journal", "writer")
