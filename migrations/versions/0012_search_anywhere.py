"""Search: one lexeme for a word, wherever it is. All entries are deleted, and written again after the migrations."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_REMOVED = """CREATE TRIGGER search_words_removed AFTER DELETE ON search_entry BEGIN
    INSERT INTO search_words(search_words, rowid, words) VALUES ('delete', old.id, old.words); END"""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("TRUNCATE search_entry")
        return
    # Delete the words of all entries at once: the trigger would delete them entry by entry.
    op.execute("DROP TRIGGER search_words_removed")
    op.execute("INSERT INTO search_words(search_words) VALUES ('delete-all')")
    op.execute("DELETE FROM search_entry")
    op.execute(_REMOVED)


def downgrade() -> None:
    """The earlier version can read the new words."""
