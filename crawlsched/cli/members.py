"""Members: describe the processes that share a collection, and its shards, for `status` and `db shards`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crawlsched.settings import format_bandwidth
from crawlsched.wording import or_dash, say_duration, say_share, say_table

if TYPE_CHECKING:
    from crawlsched.store.members import SharedCollection

__all__ = ["owner_of_all", "say_processes", "say_sharing", "sharing", "status_of_all"]


def sharing(shared: "SharedCollection") -> dict[str, Any]:
    """Describe the members of a shared collection, and how many rows wait in the inboxes of its shards.

    ``threshold_spread`` is the difference between the largest and the smallest threshold of the members, as a share of
    the largest. If it is 0, dividing the rate costs no freshness.
    """
    seen, waiting = shared.look(), shared.waiting()
    alive = {token: member for token, member in seen.members.items() if seen.is_alive(token)}
    members = [
        {
            **{name: getattr(member, name) for name in ("token", "host", "pid", "spider", "version", "granted")},
            "renewed": max(seen.now - member.renewed_at, 0.0),
            **{name: value for name, value in member.status.items() if name != "curve"},
        }
        for member in sorted(alive.values(), key=lambda member: (member.host, member.pid))
    ]
    shards = [
        {
            "shard": shard,
            "member": row.member if row.member in alive else None,
            "epoch": row.epoch,
            "ready": row.ready and row.member in alive,
            "pages": row.n_pages,
            "waiting": waiting.get(shard, (0, 0.0))[0],
        }
        for shard, row in seen.shards.items()
    ]
    thresholds = [member["threshold"] for member in members if member.get("threshold")]
    return {
        "n_shards": shared.n_shards,
        "rate": seen.rate,
        "granted": sum(member["granted"] for member in members),
        "paused_since": seen.paused_since,
        "members": members,
        "shards": shards,
        "waiting": {
            "n": sum(n for n, _ in waiting.values()),
            "oldest": max((seen.now - oldest for _, oldest in waiting.values()), default=None),
        },
        "threshold_spread": 1.0 - min(thresholds) / max(thresholds) if thresholds else None,
    }


def status_of_all(shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of all members together, in the form of a single owner's status."""
    members = shared["members"]
    resolved, slots = Counter[str](), Counter[str]()
    for member in members:
        resolved.update(member.get("resolved") or {})
        slots.update(member.get("slots") or {})
    rated = [(member["granted"], member["threshold"]) for member in members if member.get("threshold") is not None]
    total = sum(rate for rate, _ in rated)
    return {
        "bandwidth": shared["rate"],
        "dispatched": sum(member.get("dispatched") or 0 for member in members),
        "resolved": dict(resolved),
        "slots": dict(slots),
        "threshold": sum(rate * threshold for rate, threshold in rated) / total if total else None,
        "paused_since": shared["paused_since"],
        "rests": bool(members) and all(member.get("rests") for member in members),
        "last_sent_at": max((said["last_sent_at"] for said in members if said.get("last_sent_at")), default=None),
    }


def owner_of_all(shared: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the members as if they were one owner, with the name of one of them."""
    if not shared["members"]:
        return None
    first, shards = shared["members"][0], [part["owner"] for part in parts if part["owner"] is not None]
    return {
        "running": True,
        **{name: first[name] for name in ("spider", "host", "pid")},
        "started_at": min((owner["started_at"] for owner in shards if owner["started_at"]), default=None),
        "heartbeat_at": max((owner["heartbeat_at"] for owner in shards), default=None),
        "released_at": None,
    }


def say_sharing(shared: Mapping[str, Any]) -> list[str]:
    """Say who crawls, how the rate is divided, and how many rows wait in inboxes."""
    members, n_free = shared["members"], sum(row["member"] is None for row in shared["shards"])
    shards = f"  {shared['n_shards']} shards"
    if not members:
        return [f"{shards}; no process crawls them now"]
    owned = "all of them owned" if not n_free else f"{n_free} without an owner"
    rates = f"{format_bandwidth(shared['rate'])} for all, {shared['granted']:.3g}/s granted"
    lines = [f"{shards} on {say_processes(len(members))}, {owned}; {rates}", ""]
    rows = [["process", "spider", "shards", "pages", "share", "sent last minute", "threshold", "renewed"]]
    rows += [_member_row(member) for member in members]
    lines += say_table(rows, right="llrrrrrr")
    if (spread := shared["threshold_spread"]) is not None:
        lines.append(f"  the lowest threshold of the processes is {say_share(spread)} below the highest")
    waiting = shared["waiting"]
    if waiting["n"]:
        oldest = say_duration(waiting["oldest"])
        lines.append(f"  handed over and not taken in yet: {waiting['n']:,}, the oldest {oldest} ago")
    return lines


def say_processes(n: int) -> str:
    """Say how many processes there are."""
    return f"{n:,} process{'' if n == 1 else 'es'}"


def _member_row(member: Mapping[str, Any]) -> list[str]:
    return [
        f"{member['host']}:{member['pid']}",
        member["spider"],
        f"{member.get('shards', 0)}",
        f"{member.get('pages', 0):,}",
        f"{member['granted']:.3g}/s",
        or_dash(member.get("sent_per_second"), "{:.3g}/s"),
        or_dash(member.get("threshold"), "{:.3g}"),
        f"{say_duration(member['renewed'])} ago",
    ]
