"""Verification states by object store: two stores may have buckets and keys of equal names."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_KEYS = {"dataset": ["canonical"], "dataset_past": ["canonical", "until"]}


def upgrade() -> None:
    op.create_table(
        "source_store",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("store", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("source"),
    )
    for table, key in _KEYS.items():
        op.add_column(table, sa.Column("store", sa.Text(), nullable=False, server_default=""))
        _replace_key(table, ["canonical", "store", *key[1:]])


def downgrade() -> None:
    for table, key in _KEYS.items():
        op.execute(sa.delete(sa.table(table, stored := sa.column("store"))).where(stored != ""))
        _replace_key(table, key)
        op.drop_column(table, "store")
    op.drop_table("source_store")


def _replace_key(table: str, columns: list[str]) -> None:
    name = f"{table}_pkey"
    # PostgreSQL names the key so. SQLite's has no name, and a batch there replaces the table.
    with op.batch_alter_table(table, naming_convention={"pk": "%(table_name)s_pkey"}) as batch:
        batch.drop_constraint(name, type_="primary")
        batch.create_primary_key(name, columns)
