"""The native object that a recreation replaces, saved with its intent."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("journal", sa.Column("saved", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("journal", "saved")
