"""Migrations of the index's tables, and the check that they are current.

The check reads the names of the migrations only. Alembic is imported where it migrates, because each command checks, and its import
takes longer than most commands.
"""

from __future__ import annotations

import uuid
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, column, insert, inspect, select, table

import federator
from federator.connector import StateError
from federator.store import search_entries
from federator.store import tables as t
from federator.store.engine import Index, check_reachable

if TYPE_CHECKING:
    from alembic.config import Config

# Alembic's own table, with one row.
_VERSION = table("alembic_version", column("version_num"))


def upgrade_schema(index: Index, migration: str = "head") -> None:
    """Create or migrate the tables, up to a migration or the newest one. Also give a new index its fingerprint.

    Safe to repeat; the database serialises concurrent calls. Raise StateError if a newer version made the index.
    """
    from alembic import command

    check_reachable(index)
    with index.write() as connection:
        if not index.is_sqlite:
            # The number identifies this lock in the database. It serialises services that start at the same time.
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(5026120)")
        _refuse_newer(_read_migration(connection))
        config = alembic_config()
        config.attributes["connection"] = connection
        command.upgrade(config, migration)
        if migration == "head":
            # Not a part of a migration, because it uses the product's code, which expects the newest tables.
            search_entries.backfill_entries(connection)
        if connection.execute(select(t.deployment.c.value).where(t.deployment.c.key == "fingerprint")).scalar() is None:
            connection.execute(insert(t.deployment), [{"key": "fingerprint", "value": uuid.uuid4().hex}])


def require_current_schema(index: Index) -> None:
    """Raise StateError if the tables are not at the migration of this version."""
    check_reachable(index)
    current, required = current_migration(index), list_migrations()[-1]
    _refuse_newer(current)
    if current is None:
        raise StateError("the index has no tables yet", hint="federator db upgrade")
    if current != required:
        raise StateError(f"the index is at migration {current}, this version needs {required}", hint="federator db upgrade")


def _refuse_newer(current: str | None) -> None:
    if current is not None and current not in list_migrations():
        raise StateError(f"the index was made by a newer version (migration {current})", hint="upgrade the federator")


def current_migration(index: Index) -> str | None:
    """Return the migration of the database. None if it has no tables."""
    with index.read() as connection:
        return _read_migration(connection)


def _read_migration(connection: Connection) -> str | None:
    if not inspect(connection).has_table(_VERSION.name):
        return None
    migration: str | None = connection.execute(select(_VERSION.c.version_num)).scalar()
    return migration


@cache
def list_migrations() -> tuple[str, ...]:
    """Return the migrations of this version, the newest last. The names of their files start with them."""
    return tuple(sorted(file.name.partition("_")[0] for file in (_migrations_directory() / "versions").glob("[0-9]*_*.py")))


def alembic_config() -> Config:
    """Return the configuration of Alembic: the directory of the migrations."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_migrations_directory()))
    return config


def _migrations_directory() -> Path:
    """Return the directory of the migrations: in the installed package, or beside it in a clone."""
    package = Path(federator.__file__).parent
    installed = package / "_migrations"
    return installed if installed.is_dir() else package.parent / "migrations"
