"""In PostgreSQL the observations of a day are a table of their own, and are dropped with it."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_INDEXES = {
    "ix_observations_shard_collection_time": "shard, collection, time",
    "ix_observations_page_shard_collection_time": "page, shard, collection, time",
}


def _partition() -> None:
    """Put the table that there is below one that is divided by time; none of its rows is moved."""
    op.execute("ALTER TABLE observations RENAME TO observations_before")
    op.execute("ALTER TABLE observations_before DROP CONSTRAINT pk_observations")
    for name in _INDEXES:
        op.execute(f"ALTER INDEX {name} RENAME TO {name.replace('observations', 'observations_before')}")
    op.execute("CREATE TABLE observations (LIKE observations_before INCLUDING DEFAULTS) PARTITION BY RANGE (time)")
    # What makes rows distinct has to contain what divides them; a visit has one time.
    op.execute("ALTER TABLE observations ADD CONSTRAINT pk_observations PRIMARY KEY (shard, collection, id, time)")
    for name, columns in _INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON observations ({columns})")
    # Until the midnight (UTC) after the last of them, and at least of today.
    last = "greatest(extract(epoch FROM now()), (SELECT max(time) FROM observations_before))"
    end = op.get_bind().execute(sa.text(f"SELECT (floor({last} / 86400) + 1) * 86400")).scalar_one()
    bounds = f"FOR VALUES FROM (MINVALUE) TO ({float(end):.0f})"
    op.execute(f"ALTER TABLE observations ATTACH PARTITION observations_before {bounds}")
    op.execute("CREATE TABLE observations_default PARTITION OF observations DEFAULT")


def _join() -> None:
    op.execute("CREATE TABLE observations_joined (LIKE observations INCLUDING DEFAULTS)")
    op.execute("INSERT INTO observations_joined SELECT * FROM observations")
    op.execute("DROP TABLE observations")
    op.execute("ALTER TABLE observations_joined RENAME TO observations")
    op.execute("ALTER TABLE observations ADD CONSTRAINT pk_observations PRIMARY KEY (shard, collection, id)")
    for name, columns in _INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON observations ({columns})")


def upgrade() -> None:
    op.add_column("collections", sa.Column("observations_pruned", sa.Float(precision=53), nullable=True))
    if op.get_bind().dialect.name == "postgresql":
        _partition()


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        _join()
    op.drop_column("collections", "observations_pruned")
