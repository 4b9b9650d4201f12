"""A process joins others that crawl the same collection."""

import pytest

from crawlsched.exceptions import StoreError
from tests.integration.refresh.processes import process


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"crawl_value": "greedy"}, "CRAWLSCHED_CRAWL_VALUE = posterior .* here it is greedy; set it to the same"),
        ({"one_pass": True}, "CRAWLSCHED_ONE_PASS = False .* here it is True; set it to the same"),
    ],
)
def test_a_process_with_other_aims_does_not_join(shared, given, said) -> None:
    """One plan is made for all shards. When the others have ended it may crawl by its own."""
    with process(shared), process(shared), pytest.raises(StoreError, match=said), process(shared, **given):
        pass
    with process(shared, **given):
        pass
