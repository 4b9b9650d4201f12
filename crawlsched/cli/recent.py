"""Recent: what the visits of the last hour or day came to, counted in the database."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crawlsched.store import Store

__all__ = ["visits_since", "visits_together"]


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
    outcomes = {row.outcome: row.n for row in rows}
    return _counted(sum(outcomes.values()), sum(int(row.changed or 0) for row in rows), outcomes)


def visits_together(counted: "Sequence[dict[str, Any]]") -> dict[str, Any]:
    """Add up what `visits_since` has counted of several shards."""
    outcomes: dict[str, int] = {}
    for one in counted:
        for outcome, n in one["outcomes"].items():
            outcomes[outcome] = outcomes.get(outcome, 0) + n
    return _counted(sum(one["visits"] for one in counted), sum(one["changes"] for one in counted), outcomes)


def _counted(visits: int, changes: int, outcomes: dict[str, int]) -> dict[str, Any]:
    per_100 = 100 * changes / visits if visits else None
    return {"visits": visits, "changes": changes, "changes_per_100": per_100, "outcomes": outcomes}
