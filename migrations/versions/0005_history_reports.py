"""The retention horizon of a source, an index of the journal by target, and stored reports."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("source", sa.Column("horizon", sa.Integer(), nullable=False, server_default="0"))
    op.create_index("ix_journal_target", "journal", ["target_source", "target_path"], unique=False)
    op.create_table(
        "report",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.Column("directory", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_report_name", "report", ["name", "id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_report_name", table_name="report")
    op.drop_table("report")
    op.drop_index("ix_journal_target", table_name="journal")
    op.drop_column("source", "horizon")
