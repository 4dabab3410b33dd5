"""Bringing the index's tables to this version, and refusing to work on others."""

from __future__ import annotations

import uuid
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import insert, select

import federator
from federator.connector import StateError
from federator.index import search_entries
from federator.index import tables as t
from federator.index.engine import Index, check_reachable


def upgrade(index: Index, revision: str = "head") -> None:
    """Creates or migrates the tables. Harmless twice; two processes at once are kept apart by the database."""
    check_reachable(index)
    with index.write() as connection:
        if not index.sqlite:
            # The number is ours alone: one migration at a time, also of several services that start together.
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(5026120)")
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        if revision == "head":
            search_entries.make_all(connection)
        if connection.execute(select(t.deployment.c.value).where(t.deployment.c.key == "fingerprint")).scalar() is None:
            connection.execute(insert(t.deployment), [{"key": "fingerprint", "value": uuid.uuid4().hex}])


def downgrade(index: Index, revision: str = "base") -> None:
    """Takes the tables back; for tests of the migrations."""
    with index.write() as connection:
        config = _config()
        config.attributes["connection"] = connection
        command.downgrade(config, revision)


def check(index: Index) -> None:
    """Raises StateError unless the tables are of this version."""
    check_reachable(index)
    found, wanted = current(index), ScriptDirectory.from_config(_config()).get_current_head()
    if found is None:
        raise StateError("the index has no tables yet", hint="federator db upgrade")
    if found != wanted:
        raise StateError(f"the index is at migration {found}, this version needs {wanted}", hint="federator db upgrade")


def current(index: Index) -> str | None:
    """The migration the database is at, or None where there are no tables."""
    with index.read() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def _config() -> Config:
    package = Path(federator.__file__).parent
    installed = package / "_migrations"
    config = Config()
    config.set_main_option("script_location", str(installed if installed.is_dir() else package.parent / "migrations"))
    return config
