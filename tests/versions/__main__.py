"""Run the core set with other releases of what crawlsched needs; `make versions` prints the table of versions.md.

python -m tests.versions            # every pair
python -m tests.versions oldest     # one of them
"""

import sys
import tempfile
from pathlib import Path

from tests.versions.pairs import PAIRS, environment, release, run_core_set


def main(names: list[str]) -> int:
    """Print a row for each pair; return 1 if something of one failed."""
    print("| pair | Scrapy | SQLAlchemy | alembic | numpy | core set |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    failed = False
    for name in names or PAIRS:
        with tempfile.TemporaryDirectory() as folder:
            python = environment(Path(folder), name)
            ran, why = run_core_set(python, Path(folder))
            releases = " | ".join(release(python, package) for package in ("scrapy", "sqlalchemy", "alembic", "numpy"))
            print(f"| {name} | {releases} | {ran} |", flush=True)
            if why:
                failed = True
                print(why, file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
