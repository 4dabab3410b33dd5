"""Alembic's environment: runs on the connection that ``federator.store.migrations`` passes."""

from alembic import context

connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("run `federator db upgrade`")
context.configure(connection=connection, target_metadata=None, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
