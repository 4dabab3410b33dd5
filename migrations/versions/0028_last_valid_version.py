"""What the last inspection of an earlier verification state found: version and rows, and when."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

_COLUMNS = {"version": sa.BigInteger, "rows": sa.BigInteger, "checked_at": sa.Double}


def upgrade() -> None:
    for name, kind in _COLUMNS.items():
        op.add_column("dataset_past", sa.Column(name, kind()))


def downgrade() -> None:
    for name in _COLUMNS:
        op.drop_column("dataset_past", name)
