"""Search: the distinct words of names, which typos are compared with. They are inserted after the migrations, as the entries are."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    postgresql = op.get_bind().dialect.name == "postgresql"
    op.create_table(
        "search_vocabulary",
        sa.Column("word", sa.Text(collation="C" if postgresql else None), nullable=False),
        sa.PrimaryKeyConstraint("word"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("search_vocabulary")
