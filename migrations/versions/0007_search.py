"""Search: the words of each table in an inverted index, FTS5 on SQLite and a tsvector with GIN on PostgreSQL."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TSVECTOR

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# The words stand in search_entry; FTS5 keeps what leads from a word to its rows, and no second copy of them.
_WORDS = """CREATE VIRTUAL TABLE search_words USING fts5(
    words, content='search_entry', content_rowid='id', tokenize='ascii', detail='none', columnsize=0)"""
_ADDED = """CREATE TRIGGER search_words_added AFTER INSERT ON search_entry BEGIN
    INSERT INTO search_words(rowid, words) VALUES (new.id, new.words); END"""
_REMOVED = """CREATE TRIGGER search_words_removed AFTER DELETE ON search_entry BEGIN
    INSERT INTO search_words(search_words, rowid, words) VALUES ('delete', old.id, old.words); END"""


def upgrade() -> None:
    postgresql = op.get_bind().dialect.name == "postgresql"
    op.create_table(
        "search_entry",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("source", sa.Text(collation="C" if postgresql else None), nullable=False),
        sa.Column("path", sa.Text(collation="C" if postgresql else None), nullable=False),
        sa.Column("words", TSVECTOR() if postgresql else sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_search_entry_path", "search_entry", ["source", "path"], unique=False)
    op.create_index("ix_dataset_state", "dataset", ["state"], unique=False)
    if postgresql:
        op.create_index("search_words", "search_entry", ["words"], unique=False, postgresql_using="gin")
        return
    for statement in (_WORDS, _ADDED, _REMOVED):
        op.execute(statement)


def downgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        op.execute("DROP TABLE search_words")
    op.drop_index("ix_dataset_state", table_name="dataset")
    op.drop_table("search_entry")
