"""Sessions: the time at which the person last entered credentials at the provider."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("session", sa.Column("authenticated_at", sa.Double(), nullable=True))


def downgrade() -> None:
    op.drop_column("session", "authenticated_at")
