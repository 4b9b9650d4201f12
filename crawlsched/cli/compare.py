"""``crawlsched compare``: several policies and bandwidths over one history, as a table and as a picture."""

import argparse
import math
from typing import TYPE_CHECKING, Any

from crawlsched.cli.history_options import (
    ESTIMATORS_HELP,
    POLICIES_HELP,
    add_history_options,
    read_bandwidth,
    read_options,
)
from crawlsched.cli.parsing import add_json_option, examples
from crawlsched.cli.picture import need_matplotlib, new_picture, save_picture
from crawlsched.cli.replay import summary
from crawlsched.cli.wording import say_duration, say_share, say_table

if TYPE_CHECKING:
    from crawlsched.simulation import Replayed

__all__ = ["add_parser", "report", "say"]

# More of them would hide each other on the axis of a picture.
_MOST_LABELS = 10
_TIMES = ("age", "delay", "delay_median", "delay_95", "delay_longest")
_HEADINGS = ("mean age", "delay mean", "median", "95 %", "longest", "bandwidth saved")
# A page worth less than this share of the best one is a wrong pick.
_NEARLY_BEST = 0.95
_DEFAULT_POLICIES = ["round_robin", "harmonic", "posterior", "greedy:hindsight"]


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "compare",
        help="replay a history with several policies and bandwidths, as a table and a picture",
        epilog=examples("crawlsched compare --pages pages.csv --changes changes.csv --plot compared.png"),
    )
    add_history_options(parser)
    parser.add_argument(
        "--bandwidths",
        metavar="X",
        nargs="+",
        default=["0.3x", "1x", "3x"],
        help="each 0.5/s, 300/h, 2000/d, or 0.3x for 0.3 crawls per change (default: 0.3x 1x 3x)",
    )
    parser.add_argument(
        "--policies",
        metavar="NAME[:ESTIMATOR]",
        nargs="+",
        default=_DEFAULT_POLICIES,
        help=f"policies ({POLICIES_HELP}), each with an estimator if not its own "
        f"({ESTIMATORS_HELP}); default: {' '.join(_DEFAULT_POLICIES)}",
    )
    add_json_option(parser)
    parser.add_argument("--plot", metavar="OUT.png", help="draw freshness against bandwidth (.png, .svg, .pdf)")
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Replay the history with each policy at each bandwidth."""
    from crawlsched.simulation import replay

    if arguments.plot:
        need_matplotlib()
    history, window = read_options(arguments)
    bandwidths = [read_bandwidth(text, history, window) for text in arguments.bandwidths]
    replays = []
    for name in arguments.policies:
        policy, _, estimator = name.partition(":")
        for bandwidth in bandwidths:
            done = replay(history, bandwidth, policy, estimator or None, seed=arguments.seed, **window)
            timely = done.timeliness._asdict().items()
            times = {name: None if math.isnan(value) else value for name, value in timely}
            replays.append({"name": name, **summary(done), **times, **_cost(done)})
    _add_savings(replays)
    result = {"bandwidths": bandwidths, "policies": list(arguments.policies), "replays": replays}
    if arguments.plot:
        _draw(result, arguments.bandwidths, arguments.plot)
    # What was asked for says more in a heading than a number with 17 digits.
    return {**result, "headings": arguments.bandwidths}


def say(report: dict[str, Any]) -> str:
    """Lay out a row for each policy and a column for each bandwidth; then ages and delays at each bandwidth."""
    columns = len(report["bandwidths"])
    headings = [
        text if "x" not in text else f"{text} ({_short(bandwidth)})"
        for text, bandwidth in _asked(report["bandwidths"], report["headings"])
    ]
    cells = ["-" if one["freshness"] is None else f"{one['freshness']:.4f}" for one in report["replays"]]
    rows = [["freshness at", *headings]]
    for number, name in enumerate(report["policies"]):
        rows.append([name, *cells[number * columns : (number + 1) * columns]])
    lines = say_table(rows, "l" + "r" * columns, indent="")
    for column, heading in enumerate(headings):
        rows = [[f"at {heading}", *_HEADINGS]]
        for one in report["replays"][column::columns]:
            times = ["-" if one[name] is None else say_duration(one[name]) for name in _TIMES]
            rows.append([one["name"], *times, "-" if one["saved"] is None else say_share(one["saved"])])
        lines += ["", *say_table(rows, "l" + "r" * len(_HEADINGS), indent="")]
    first = report["policies"][0]
    lines += ["", f"Bandwidth saved: how much less keeps pages as fresh as {first} does (- beyond these bandwidths)."]
    for number, one in enumerate(report["replays"]):
        if "worth" in one:
            lines.append(
                f"{one['name']} at {headings[number % columns]}: the page picked is worth {one['worth']:.4f} of the "
                f"best, by brute force on the same pages; below {_NEARLY_BEST} of it in {say_share(one['worse'])}."
            )
    return "\n".join(lines)


def _cost(done: "Replayed") -> dict[str, float]:
    """Return what the picks of the frontier that crawls are worth beside brute force; nothing of other policies."""
    if done.worth is None or not done.worth.size:
        return {}
    return {"worth": float(done.worth.mean()), "worse": float((done.worth < _NEARLY_BEST).mean())}


def _add_savings(replays: list[dict[str, Any]]) -> None:
    """Add to each replay which share of its bandwidth would be saved at the freshness of the first policy; or None.

    Between two bandwidths a policy's freshness is taken to grow in proportion to the logarithm of the bandwidth.

    Examples
    --------
    >>> runs = [{"name": name, "bandwidth": bandwidth, "freshness": fresh} for name, bandwidth, fresh in
    ...         [("a", 1.0, 0.5), ("a", 4.0, 0.7), ("b", 1.0, 0.6), ("b", 4.0, 0.8)]]
    >>> _add_savings(runs)
    >>> [one["saved"] for one in runs]
    [0.0, 0.0, None, 0.5]
    """
    first = {one["bandwidth"]: one["freshness"] for one in replays if one["name"] == replays[0]["name"]}
    curves: dict[str, list[tuple[float, float]]] = {}
    for one in replays:
        if one["freshness"] is not None:
            curves.setdefault(one["name"], []).append((one["freshness"], one["bandwidth"]))
    for one in replays:
        wanted, one["saved"] = first[one["bandwidth"]], None
        if wanted is None:
            continue
        points = sorted(curves.get(one["name"], []))
        for (low, less), (high, more) in zip(points, points[1:] or points, strict=False):
            if low <= wanted <= high:
                share = (wanted - low) / (high - low) if high > low else 1.0
                needed = math.exp(math.log(less) + share * (math.log(more) - math.log(less)))
                one["saved"] = 1.0 - needed / one["bandwidth"]
                if needed == one["bandwidth"] or math.isclose(needed, one["bandwidth"]):
                    one["saved"] = 0.0
                break


def _asked(bandwidths: list[float], texts: list[str]) -> list[tuple[str, float]]:
    return list(zip(texts, bandwidths, strict=True))


def _short(bandwidth: float) -> str:
    if bandwidth < 1 / 3600:
        return f"{bandwidth * 86400:.4g}/d"
    return f"{bandwidth * 3600:.4g}/h" if bandwidth < 1 else f"{bandwidth:.4g}/s"


def _labels(asked: list[tuple[str, float]]) -> dict[float, str]:
    r"""Return what stands at each bandwidth on a logarithmic axis; nothing where it would hide the one before.

    Examples
    --------
    >>> _labels([("2x", 4.0), ("1x", 2.0), ("2.1/s", 2.1), ("20/s", 20.0)])
    {2.0: '1x\n2/s', 2.1: '', 4.0: '2x\n4/s', 20.0: '20/s'}
    """
    in_order = sorted(asked, key=lambda one: one[1])
    apart = (in_order[-1][1] / in_order[0][1]) ** (1 / _MOST_LABELS)
    labels: dict[float, str] = {}
    last = 0.0
    for text, bandwidth in in_order:
        if bandwidth < last * apart:
            labels.setdefault(bandwidth, "")
            continue
        last = bandwidth
        labels[bandwidth] = f"{text}\n{_short(bandwidth)}" if "x" in text else text
    return labels


def _draw(result: dict[str, Any], texts: list[str], path: str) -> None:
    """Draw freshness against bandwidth, a line for each policy; the bandwidths stand there as they were asked for."""
    canvas, axes = new_picture()
    labels = _labels(_asked(result["bandwidths"], texts))
    axes.set_xticks(list(labels), list(labels.values()))
    axes.set_xticks([], minor=True)
    axes.set_xlabel("bandwidth (x: crawls per change)" if any("x" in text for text in texts) else "bandwidth")
    for name in result["policies"]:
        points = sorted(
            (one["bandwidth"], one["freshness"])
            for one in result["replays"]
            if one["name"] == name and one["freshness"] is not None
        )
        axes.plot([x for x, _ in points], [y for _, y in points], marker="o", label=name)
    axes.legend()
    save_picture(canvas, path)
