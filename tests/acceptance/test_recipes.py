"""Guides of docs/how-to, word for word: each recipe of import_history.md on a small input, the Dockerfile of deploy.md.

Of the latter all but the build itself, in a project of `startproject`.
"""

import dbm
import gzip
import os
import re
import shlex
import shutil
import sys
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from scrapy import Request
from scrapy.utils.request import fingerprint

from tests import children
from tests.databases import rows
from tests.site import Site
from tests.waiting import wait_until

GUIDE = (children.ROOT / "docs/how-to/import_history.md").read_text()
SECTION = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
RECIPES = {title: BLOCK.findall(text) for title, text in SECTION.findall(GUIDE)}
TABLE = tomllib.loads(Path(__file__).with_name("recipes.toml").read_text())["recipe"]
BIN = Path(sys.executable).parent
DATABASE = "sqlite:///crawlsched.db"

WARC = (
    "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{n}0000000-0000-0000-0000-000000000000>\r\n"
    "WARC-Target-URI: http://a.example/1\r\nWARC-Date: 2026-01-0{n}T00:00:00Z\r\nWARC-Payload-Digest: sha1:{digest}\r\n"
    "Content-Type: application/http; msgtype=response\r\nContent-Length: {length}\r\n\r\n{http}\r\n\r\n"
)
HTTP = "HTTP/1.1 {status} OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"


def follow(folder: Path, recipe: str) -> None:
    """Run a recipe in a folder that is no project: there, only the database has to be named."""
    recipe = re.sub(r"crawlsched (import|export)", rf"crawlsched \1 --database {DATABASE}", recipe)
    environment = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "SCRAPY_SETTINGS_MODULE": None}
    done = children.run("bash", "-euo", "pipefail", "-c", recipe, cwd=folder, environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left out" not in done.stdout, done.stdout


def pages(folder: Path, collection: str = "news") -> dict[str, tuple[float, float, float, float]]:
    """Return of each URL: visits, changes, time of the last visit (0: there was none), importance."""
    columns = "url, n_crawls, n_changes, coalesce(crawled_at, 0) AS crawled_at, importance"
    asked = f"SELECT {columns} FROM pages JOIN collections USING (collection) WHERE name = :name"
    found = rows(f"sqlite:///{folder}/crawlsched.db", asked, name=collection)
    return {url: tuple(known) for url, *known in (page.values() for page in found)}


@pytest.mark.parametrize("recipe", TABLE, ids=lambda recipe: recipe["title"])
def test_a_recipe_makes_pages_of_a_file(recipe, tmp_path):
    """What it tells of each URL is what the table of recipes says."""
    (tmp_path / recipe["file"]).write_text(recipe["text"])
    follow(tmp_path, RECIPES[recipe["title"]][0])
    found = pages(tmp_path, recipe.get("collection", "news"))
    assert found == {url: tuple(known) for url, known in recipe["pages"].items()}


@pytest.fixture
def cached(tmp_path):
    """Crawl a site with Scrapy's own HTTP cache."""
    with Site() as site:
        urls = [site.page(f"/{n}", f"<p>{n}</p>") for n in range(3)]
        spider = f"import scrapy\nclass S(scrapy.Spider):\n    name = 'SPIDER'\n    start_urls = {urls}\n"
        (tmp_path / "spider.py").write_text(f"{spider}    def parse(self, response): pass\n")
        (tmp_path / "scrapy.cfg").write_text("")
        settings = "HTTPCACHE_ENABLED=True", "TELNETCONSOLE_ENABLED=False", "LOG_LEVEL=ERROR"
        options = [f"-s{setting}" for setting in settings]
        children.output_of(sys.executable, "-m", "scrapy", "runspider", "spider.py", *options, cwd=tmp_path)
        (tmp_path / "scrapy.cfg").unlink()
        yield urls


def test_the_cache_of_scrapy_tells_of_one_visit_a_page(cached, tmp_path):
    """As Scrapy itself has written it."""
    follow(tmp_path, *RECIPES["From Scrapy's HTTP cache"])
    found = pages(tmp_path)
    assert set(found) == set(cached)
    assert {visits for visits, *_ in found.values()} == {1}


@pytest.mark.parametrize("key", [lambda digest: digest, lambda digest: digest.hex()], ids=["bytes", "digits"])
def test_deltafetch_tells_when_pages_were_seen(key, tmp_path):
    """It keeps fingerprints, as bytes or (before 2.1) as digits; a URL that it does not know is no page."""
    (tmp_path / ".scrapy/deltafetch").mkdir(parents=True)
    with dbm.open(str(tmp_path / ".scrapy/deltafetch/SPIDER.db"), "c") as seen:
        seen[key(fingerprint(Request("http://a.example/1")))] = "1700000000.25"  # type: ignore[operator]
    (tmp_path / "urls.txt").write_text("http://a.example/1\nhttp://a.example/2\n")
    follow(tmp_path, *RECIPES["From deltafetch"])
    assert pages(tmp_path) == {"http://a.example/1": (1, 0, 1700000000.25, 1)}


def test_an_archive_tells_of_visits(tmp_path):
    """Record by record, as `warcio` and others write them."""
    with gzip.open(tmp_path / "a.warc.gz", "wb") as file:
        for n, (status, digest) in enumerate(((200, "AAA"), (200, "AAA"), (200, "BBB"), (500, "CCC")), 1):
            http = HTTP.format(status=status)
            file.write(WARC.format(n=n, digest=digest, http=http, length=len(http)).encode())
    follow(tmp_path, RECIPES["From CDX or WARC"][1])
    assert pages(tmp_path, "archive") == {"http://a.example/1": (3, 1, 1767398400.0, 1)}


def test_what_goes_out_comes_in_again(tmp_path):
    """The visits of an export make the same pages."""
    (tmp_path / "visits.csv").write_text(
        "url,time,changed\nhttp://a.example/1,1790000000,\nhttp://a.example/1,1790000900,1\n"
    )
    follow(tmp_path, "crawlsched import visits.csv --collection news")
    follow(tmp_path, *RECIPES["Export"])
    assert pages(tmp_path, "copy") == pages(tmp_path) == {"http://a.example/1": (2, 1, 1790000900.0, 1)}


def test_every_recipe_is_followed():
    """A recipe more in the guide needs a test here, or a row in the table."""
    above = ["From Scrapy's HTTP cache", "From deltafetch", "From CDX or WARC", "Export"]
    followed = sorted([*(recipe["title"] for recipe in TABLE), *above])
    assert followed == sorted(title for title, recipes in RECIPES.items() for _ in recipes)


DEPLOY = (children.ROOT / "docs/how-to/deploy.md").read_text()


def _block(language: str, with_line: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", DEPLOY, re.DOTALL)
    (found,) = [block for block in blocks if with_line in block]
    return str(found)


def test_the_lines_of_the_dockerfile_run_in_a_new_project(tmp_path):
    """What is installed needs no package of the project; the copied project crawls, stops, and leaves its volume."""
    scrapy = (sys.executable, "-m", "scrapy")
    children.run(*scrapy, "startproject", "monitor", cwd=tmp_path)
    project, image, volume = tmp_path / "monitor", tmp_path / "srv", tmp_path / "data"
    children.run(*scrapy, "genspider", "news", "127.0.0.1", cwd=project)
    settings = _block("python", "CRAWLSCHED_DATABASE_URL").replace("/data", str(volume))
    with (project / "monitor/settings.py").open("a") as file:
        file.write("\n" + settings)
    lines = [shlex.split(line) for line in _block("dockerfile", "FROM").splitlines()]
    assert [line[0] for line in lines] == ["FROM", "WORKDIR", "RUN", "COPY", "VOLUME", "STOPSIGNAL", "CMD"]
    by_name = {name: rest for name, *rest in lines}
    command, verb, *installed = by_name["RUN"]
    assert (command, verb) == ("pip", "install")
    for named in (argument for argument in installed if not argument.startswith("--")):
        requirement = Requirement(named)  # and no folder: a new project has neither setup.py nor pyproject.toml
        assert requirement.name == "crawlsched"
        assert requirement.extras <= set(metadata("crawlsched").get_all("Provides-Extra"))
    assert by_name["COPY"] == [".", "."]
    shutil.copytree(project, image)
    volume.mkdir()
    assert by_name["VOLUME"] == ["/data"]
    arguments = [argument.strip(",") for argument in shlex.split(" ".join(by_name["CMD"]).strip("[]"))]
    assert arguments[0] == "scrapy"
    with (tmp_path / "log").open("w") as log, children.all_ended():
        crawl = children.start(*scrapy, *arguments[1:], cwd=image, stdout=log, stderr=log)
        # Nobody answers at 443; it says so once it has asked.
        wait_until(lambda: " ERROR: " in (tmp_path / "log").read_text(), say=(tmp_path / "log").read_text)
        assert by_name["STOPSIGNAL"] == ["SIGTERM"]
        crawl.terminate()
        assert crawl.wait(30.0) == 0
    said = (tmp_path / "log").read_text()
    assert "Collection 'news' in sqlite" in said
    assert "Spider closed (shutdown)" in said
    assert "DEBUG" not in said
    assert [file.name for file in volume.iterdir()] == ["crawlsched.db"]
