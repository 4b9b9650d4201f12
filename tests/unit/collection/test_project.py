"""The project: one database whatever the working directory, and collections named by a spider's arguments."""

from pathlib import Path

import pytest

from crawlsched.crawl.project import anchored, named_collection
from crawlsched.exceptions import SettingError


@pytest.mark.parametrize("url", ["postgresql://a@b/c", "sqlite:////var/crawl.db", "sqlite://", "sqlite:///:memory:"])
def test_what_is_no_relative_path_stays(url: str, tmp_path: Path) -> None:
    """Only a relative path depends on where somebody stands."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\n")
    (tmp_path / "sub").mkdir()
    assert anchored(url, tmp_path / "sub") == url


def test_a_collection_may_have_arguments_in_its_name() -> None:
    """An argument that is not there is one clear sentence."""
    assert named_collection("{name}-{tag}", "quotes", {"tag": "love", "name": "other"}) == "quotes-love"
    with pytest.raises(SettingError, match="has no argument 'tag'; give it with -a tag=VALUE"):
        named_collection("{name}-{tag}", "quotes", {})
    with pytest.raises(SettingError, match="cannot be filled in: expected"):
        named_collection("{name", "quotes", {})
