"""Search: a word has one lexeme for wherever it stands. The entries are made anew after the migrations, as where there were none."""

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
    # The words of every entry at once, and not one after the other.
    op.execute("DROP TRIGGER search_words_removed")
    op.execute("INSERT INTO search_words(search_words) VALUES ('delete-all')")
    op.execute("DELETE FROM search_entry")
    op.execute(_REMOVED)


def downgrade() -> None:
    """The words are those of before, and more."""
