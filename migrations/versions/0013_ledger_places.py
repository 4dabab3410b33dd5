"""Canonical locations of the tables in the ledger."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

# The current record of the target is at least as new as the declaration.
_FILL = """
UPDATE ledger SET canonical = (
    SELECT r.canonical FROM record AS r
    WHERE r.source = ledger.target_source AND r.path = ledger.target_path AND r.is_table = 1 AND r.valid_to IS NULL
) WHERE is_table = 1
"""


def upgrade() -> None:
    op.add_column("ledger", sa.Column("canonical", sa.Text(), nullable=True))
    op.execute(_FILL)
    op.create_index("ix_ledger_place", "ledger", ["target_source", "canonical"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_ledger_place", table_name="ledger")
    op.drop_column("ledger", "canonical")
