"""Alembic's entry: runs on the connection that backend.migrate hands over. PostgreSQL only."""

from alembic import context

from backend.tables import Base


def run() -> None:
    connection = context.config.attributes["connection"]
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        compare_type=True,
        compare_server_default=True,
        transaction_per_migration=False,
    )
    with context.begin_transaction():
        context.run_migrations()


run()
