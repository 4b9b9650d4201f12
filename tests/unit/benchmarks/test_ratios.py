"""The ratios of benchmarks are kept, and what has fallen is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.ratios import keep


def test_what_fell_by_more_than_a_twentieth_is_said_and_the_newest_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A first ratio, one within the noise, one below it, and another benchmark's."""
    file = tmp_path / "ratios.json"
    for ratio in (0.93, 0.90):
        keep("crawl: ceiling", ratio, file)
    keep("store: loading", 3.0, file)
    assert capsys.readouterr().out == ""
    keep("crawl: ceiling", 0.72, file)
    said = capsys.readouterr().out
    assert "FELL: crawl: ceiling: 0.90 on " in said
    assert "0.72 now" in said
    kept = json.loads(file.read_text())
    assert {name: of["ratio"] for name, of in kept.items()} == {"crawl: ceiling": 0.72, "store: loading": 3.0}
    assert set(kept["crawl: ceiling"]) == {"ratio", "date", "commit", "machine"}
