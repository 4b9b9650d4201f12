"""One collection, one rate, many processes: members, shards that they own, and what they hand over to each other."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

# `crawlsched.sharing.renewal` is the same in Python, and a test holds the two against each other. One call, so that
# the budget's row is locked only while the server works, however slow or stopped the caller is.
_RENEW = """
CREATE FUNCTION crawlsched_renew(
    col integer, me text, num bigint, using_ double precision, wants double precision, claims integer[],
    lease double precision, about json, said text, at double precision, server double precision
) RETURNS TABLE (
    answer double precision, shards integer[], epochs bigint[], moment double precision, paused double precision
) LANGUAGE plpgsql AS $$
DECLARE
    budget budgets%ROWTYPE;
    mine members%ROWTYPE;
    moment_ double precision;
    may_rise boolean;
    use double precision;
    others double precision;
    granted_ double precision;
    vacant integer;
BEGIN
    SELECT * INTO budget FROM budgets b WHERE b.shard = -1 AND b.collection = col FOR UPDATE;
    moment_ := coalesce(at, extract(epoch FROM clock_timestamp()));
    SELECT * INTO mine FROM members m WHERE m.shard = -1 AND m.collection = col AND m.token = me;
    IF mine.number >= num THEN
        RETURN;
    END IF;
    IF coalesce(server, extract(epoch FROM pg_postmaster_start_time())) > budget.renewed_at THEN
        budget.hold_until := moment_ + lease;
    END IF;
    UPDATE budgets b SET renewed_at = moment_, hold_until = budget.hold_until WHERE b.shard = -1 AND b.collection = col;
    may_rise := budget.hold_until IS NULL OR moment_ >= budget.hold_until;
    use := CASE WHEN mine.expires_at > moment_ OR NOT may_rise THEN using_ ELSE 0 END;
    SELECT coalesce(sum(m.granted), 0) INTO others FROM members m
        WHERE m.shard = -1 AND m.collection = col AND m.token <> me AND m.expires_at > moment_;
    granted_ := greatest(0, least(wants, budget.rate - others));
    IF NOT may_rise THEN
        granted_ := least(granted_, use);
    END IF;
    INSERT INTO members (shard, collection, token, number, granted, expires_at, host, machine, pid, process_started,
            spider, version, started_at, status)
        VALUES (-1, col, me, num, greatest(use, granted_), moment_ + lease, about->>'host', about->>'machine',
            (about->>'pid')::bigint, about->>'process_started', about->>'spider', about->>'version', moment_, said)
        ON CONFLICT (shard, collection, token) DO UPDATE SET number = excluded.number, granted = excluded.granted,
            expires_at = excluded.expires_at, status = excluded.status;
    IF may_rise THEN
        -- A lease that its owner is just writing under is left for the next time, and never waited for.
        FOR vacant IN
            SELECT l.shard FROM leases l WHERE l.collection = col AND l.shard = ANY (claims) AND NOT EXISTS (
                SELECT 1 FROM members m WHERE m.shard = -1 AND m.collection = col AND m.token = l.member
                AND m.expires_at > moment_) ORDER BY l.shard FOR UPDATE OF l SKIP LOCKED
        LOOP
            UPDATE leases l SET member = me, epoch = l.epoch + 1, token = me || ':' || (l.epoch + 1), ready = 0,
                host = about->>'host', machine = about->>'machine', pid = (about->>'pid')::bigint,
                process_started = about->>'process_started', spider = about->>'spider', started_at = moment_,
                heartbeat_at = moment_, released_at = NULL
                WHERE l.collection = col AND l.shard = vacant;
        END LOOP;
    END IF;
    RETURN QUERY SELECT granted_, coalesce(array_agg(l.shard ORDER BY l.shard), '{}'),
        coalesce(array_agg(l.epoch ORDER BY l.shard), '{}'), moment_, budget.paused_since
        FROM leases l WHERE l.collection = col AND l.member = me;
END $$
"""


def _key() -> tuple[sa.Column[int], sa.Column[int]]:
    return (
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("collection", sa.Integer(), autoincrement=False, nullable=False),
    )


def _number(name: str, *, nullable: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Float(precision=53), nullable=nullable)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def upgrade() -> None:
    zero = sa.text("0")
    op.add_column("leases", sa.Column("member", sa.Text(), nullable=True))
    op.add_column("leases", sa.Column("epoch", sa.BigInteger(), server_default=zero, nullable=False))
    op.add_column("leases", sa.Column("ready", sa.SmallInteger(), server_default=zero, nullable=False))
    op.add_column("leases", sa.Column("n_pages", sa.BigInteger(), server_default=zero, nullable=False))
    op.add_column("leases", sa.Column("curve", sa.LargeBinary(), nullable=True))
    op.create_table(
        "budgets",
        *_key(),
        sa.Column("n_shards", sa.Integer(), nullable=False),
        _number("rate"),
        _number("renewed_at", nullable=True),
        _number("hold_until", nullable=True),
        _number("paused_since", nullable=True),
        sa.PrimaryKeyConstraint("shard", "collection", name=op.f("pk_budgets")),
    )
    op.create_table(
        "members",
        *_key(),
        _text("token"),
        sa.Column("number", sa.BigInteger(), nullable=False),
        _number("granted"),
        _number("expires_at"),
        _text("host"),
        _text("machine"),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        *(_text(name) for name in ("process_started", "spider", "version")),
        _number("started_at"),
        _text("status"),
        sa.PrimaryKeyConstraint("shard", "collection", "token", name=op.f("pk_members")),
    )
    op.create_table(
        "inbox",
        *_key(),
        _text("sender"),
        sa.Column("number", sa.BigInteger(), nullable=False),
        _text("kind"),
        _text("data"),
        _number("created_at"),
        sa.PrimaryKeyConstraint("shard", "collection", "sender", "number", name=op.f("pk_inbox")),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_RENEW)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION crawlsched_renew")
    for table in ("inbox", "members", "budgets"):
        op.drop_table(table)
    for name in ("curve", "n_pages", "ready", "epoch", "member"):
        op.drop_column("leases", name)
