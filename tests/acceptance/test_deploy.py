"""The Dockerfile of docs/how-to/deploy.md, line by line but for the build itself, in a project of `startproject`."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from importlib.metadata import metadata
from pathlib import Path

from packaging.requirements import Requirement

from tests import children
from tests.waiting import wait_until

GUIDE = (children.ROOT / "docs/how-to/deploy.md").read_text()


def _block(language: str, with_line: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    (found,) = [block for block in blocks if with_line in block]
    return str(found)


def test_the_lines_of_the_dockerfile_run_in_a_new_project(tmp_path: Path) -> None:
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
