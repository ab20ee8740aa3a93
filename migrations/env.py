"""How Alembic runs these migrations: on the caller's connection, inside the caller's transaction.

`perftrack.store.migrate` opens that connection (foreign keys off, write lock or advisory lock held), so a
migration that fails leaves nothing behind, on SQLite too.
"""

from alembic import context

attributes = context.config.attributes
connection = attributes["connection"]

context.configure(
    connection=connection,
    version_table=attributes["version_table"],
    render_as_batch=connection.dialect.name == "sqlite",
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
