"""Verification states by access: sources of one store may open it with other credentials, or none."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_TABLES = ("dataset", "dataset_past")
# ``store.stores`` moves these facts to the source that they were verified through.
_BEFORE = "before 0027 "
_PATHS = "file:///%"


def upgrade() -> None:
    op.add_column("source_store", sa.Column("access", sa.Text(), nullable=False, server_default=""))
    for table in _TABLES:
        op.alter_column(table, "store", new_column_name="access")
        facts, access = _columns(table)
        op.execute(facts.update().where(facts.c.canonical.not_like(_PATHS)).values(access=sa.literal(_BEFORE) + access))


def downgrade() -> None:
    for table in _TABLES:
        facts, _ = _columns(table)
        # Facts by store must not be those of one access: they are verified again.
        op.execute(facts.delete().where(facts.c.canonical.not_like(_PATHS)))
        op.alter_column(table, "access", new_column_name="store")
    op.drop_column("source_store", "access")


def _columns(name: str) -> tuple[sa.TableClause, sa.ColumnClause[str]]:
    table = sa.table(name, sa.column("canonical", sa.Text()), access := sa.column("access", sa.Text()))
    return table, access
