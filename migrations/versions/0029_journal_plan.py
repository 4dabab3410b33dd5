"""Index of the journal by plan: a plan shows what became of its changes."""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_journal_plan", "journal", ["plan"])


def downgrade() -> None:
    op.drop_index("ix_journal_plan", table_name="journal")
