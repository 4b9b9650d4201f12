"""The tutorial, word for word: whoever types what stands there gets what it says."""

import json
import os
import re
import sys
from pathlib import Path

from tests import children

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial" / "first_crawl.md"
BLOCK = re.compile(r"^(<!-- not tested:[^\n]*\n)?```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_tutorial_leads_to_the_first_changed_item(tmp_path):
    """Its files are written and its commands run in their order; prices have changed, and the commands say so."""
    script = []
    for untested, language, title, text in BLOCK.findall(TUTORIAL.read_text()):
        if title:
            (tmp_path / title).write_text(text)
        elif language == "bash" and not untested:
            script.append(text)
    assert len(script) == 6
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment, script = {"PATH": path, "SCRAPY_SETTINGS_MODULE": None}, "".join([*script, "kill %1\n"])
    said = children.output_of("bash", "-ec", script, cwd=tmp_path, environment=environment, timeout=180.0)
    items = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    prices = {}
    for item in items:
        prices.setdefault(item["url"], []).append(item["price"])
    assert len(prices) == 20
    changed = {url for url, seen in prices.items() if len(set(seen)) > 1}
    assert changed
    assert changed <= {f"http://127.0.0.1:8731/p/{n}" for n in range(0, 20, 3)}
    assert "20 pages" in said or "21 pages" in said
    assert "changes     every" in said
    assert "next crawl" in said
