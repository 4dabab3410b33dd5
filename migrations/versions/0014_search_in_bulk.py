"""Search: the code that writes entries also writes their words. The trigger that did so for each row took three times as long."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_ADDED = """CREATE TRIGGER search_words_added AFTER INSERT ON search_entry BEGIN
    INSERT INTO search_words(rowid, words) VALUES (new.id, new.words); END"""


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        op.execute("DROP TRIGGER search_words_added")


def downgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        op.execute(_ADDED)
