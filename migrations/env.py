"""Alembic's environment: run by `crawlsched.store.schema` on a connection that it has opened and locked."""

from alembic import context

from crawlsched.store.models import metadata
from crawlsched.store.schema import VERSION_TABLE

connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("The migrations of crawlsched are run by the command: crawlsched db upgrade")

context.configure(
    connection=connection,
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    # SQLite's DDL is transactional, and the whole upgrade is one transaction: it happens wholly or not at all.
    transactional_ddl=True,
    # SQLite cannot alter most columns: a table is copied instead.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
