"""Recent: what the visits of the last hour or day came to, counted in the database."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crawlsched.store import Store

__all__ = ["visits_since"]


def visits_since(store: "Store", since: float) -> dict[str, Any]:
    """Count the visits since a time.

    Returns
    -------
    dict
        ``visits``, ``changes`` (visits that found one), ``changes_per_100`` (None without visits), and ``outcomes``.
    """
    from sqlalchemy import func, select

    from crawlsched.store.models import observations as table

    wanted = (
        select(table.c.outcome, func.count().label("n"), func.sum(table.c.changed).label("changed"))
        .where(table.c.shard == store.key[0], table.c.collection == store.key[1], table.c.time >= since)
        .group_by(table.c.outcome)
        .order_by(table.c.outcome)
    )
    with store.database.reading() as connection:
        rows = connection.execute(wanted).all()
    visits = sum(row.n for row in rows)
    changes = sum(int(row.changed or 0) for row in rows)
    return {
        "visits": visits,
        "changes": changes,
        "changes_per_100": 100 * changes / visits if visits else None,
        "outcomes": {row.outcome: row.n for row in rows},
    }
