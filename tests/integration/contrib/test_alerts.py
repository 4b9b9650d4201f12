"""What lies in contrib/ speaks of metrics that there are, and each alert is fired by what it is about."""

import json
import re
import shutil
from contextlib import closing

import pytest

from crawlsched.store import Batch, Host, Store
from crawlsched.web.metrics import metrics
from crawlsched.web.vitals import vitals
from tests import children
from tests.integration.web.conftest import fill

CONTRIB = children.ROOT / "contrib"
RULES = CONTRIB / "prometheus/crawlsched.rules.yml"
BOARD = CONTRIB / "grafana/crawlsched.json"
PROMTOOL = shutil.which("promtool")


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> str:
    """All metrics that there can be: of a crawl that runs, with hosts that fail and rest, and names of any signs."""
    database = f"sqlite:///{tmp_path_factory.mktemp('alerts')}/crawl.db"
    fill(database)
    failing = {"failing": {"since": 1.0, "answer": "403", "pages": {"live": 1, "refused": 20}}}
    status = {"last_sent_at": 1.0, "bandwidth": 2.0, "threshold": 3.0, "pages": 4, "paused_since": None}
    status |= {"slots": {"used": 1, "idle": 2, "no_free_host": 3, "missed": 4}, "resolved": {"changed": 5}}
    with closing(Store.open(database, "shop")) as store:
        store.save(Batch(hosts={"b.example": Host("b.example", counts=failing)}))
        store.take_lease("spider").heartbeat(None, status)
        seen = vitals(store)
    return metrics({'quotes " and \\ backslashes\n': seen, "news/3": seen}).decode()


def test_dashboard_and_rules_name_metrics_that_there_are(given):
    """No panel and no rule waits for a name that nobody gives; the labels they choose by are given, too."""
    names = set(re.findall(r"^(crawlsched_\w+?)\{", given, re.MULTILINE))
    board = json.loads(BOARD.read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    for expression in [*expressions, *re.findall(r"expr: (.*?)\n +for:", RULES.read_text(), re.DOTALL)]:
        used = set(re.findall(r"\bcrawlsched_\w+", expression))
        assert used - names == set(), expression
        for label in re.findall(r'[{,](\w+)[=!]~?"', expression):
            assert f'{label}="' in given or label == "job"
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


@pytest.mark.skipif(PROMTOOL is None, reason="There is no promtool here (apt-get install prometheus).")
def test_each_rule_fires_when_it_should_and_only_then(given):
    """`promtool test rules` fires all of them, and none for a crawl that is well; every rule has a test."""
    folder = CONTRIB / "prometheus"
    done = children.run(PROMTOOL, "test", "rules", "crawlsched.test.yml", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    rules = set(re.findall(r"- alert: (\w+)", RULES.read_text()))
    tested = (folder / "crawlsched.test.yml").read_text()
    fired = set(re.findall(r"alertname: (\w+)\n +exp_alerts:\n", tested))
    quiet = set(re.findall(r"alertname: (\w+), exp_alerts: \[\]", tested))
    assert rules == fired == quiet
    checked = children.run(PROMTOOL, "check", "metrics", input=given)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
