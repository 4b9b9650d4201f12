"""What the papers claim of their figures, and whether it came out; the function of a figure's claims has its name.

    python -m tests.papers.claims FIGURE [--repetitions N] [--pages M ...] [--horizon T] [--seed S]

simulates a figure and says so; without settings as printed in the paper, which can take hours.
"""

import argparse

from crawlsched.simulation.figures import FIGURES, Table
from tests.papers import claims_of_change_rates, claims_of_noisy_signals
from tests.papers.claim import Claim


def claims_of(name: str, table: Table) -> list[Claim]:
    """Return what is claimed of a figure, as it came out in a table."""
    claims = vars(claims_of_change_rates) | vars(claims_of_noisy_signals)
    return list(claims[name.replace("-", "_")](table))


def main() -> None:
    """Simulate a figure and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("figure", choices=FIGURES)
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--pages", type=int, nargs="+")
    parser.add_argument("--horizon", type=float)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    figure = FIGURES[given.figure]
    table = figure.run(
        figure.with_settings(given.repetitions, given.pages, given.horizon, given.seed), lambda done, total: None
    )
    words = {True: "held", False: "FAILED", None: "cannot be told"}
    for claim in claims_of(given.figure, table):
        print(f"{words[claim.held]}: {claim.sentence}.")


if __name__ == "__main__":
    main()
