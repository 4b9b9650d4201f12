"""Pings are read by the letter, and whoever does not know the key is refused."""

import hashlib
import hmac
import json
from pathlib import Path

import pytest

from crawlsched.receiver.pings import (
    PingRefused,
    begun_signature,
    callback_token,
    is_equal,
    read_indexnow,
    subscription_form,
)

KEY = "0123456789abcdef"


def is_signed(header: str | None, body: bytes, topic: str, key: str) -> bool:
    try:
        digits, right = begun_signature(header, topic, key)
    except PingRefused:
        return False
    right.update(body)
    return is_equal(digits, right.hexdigest())


def _post(**told: object) -> tuple[str, tuple[str, ...]]:
    given = {"host": "a.example", "key": KEY, "urlList": ["https://a.example/1"], **told}
    return read_indexnow({}, json.dumps(given).encode(), KEY)


def test_a_ping_by_get_and_by_post() -> None:
    """One URL in the query, or many in JSON; each once."""
    found = read_indexnow({"url": "http://a.example/1", "key": KEY}, None, KEY)
    assert found == ("a.example", ("http://a.example/1",))
    urls = ["https://a.example/1", "https://a.example/2", "https://a.example/1"]
    assert _post(urlList=urls) == ("a.example", tuple(urls[:2]))


def refusal(**told: object) -> int:
    """Return the status with which a ping is refused."""
    with pytest.raises(PingRefused) as refused:
        _post(**told)
    return refused.value.status


@pytest.mark.parametrize("case", (Path(__file__).parent / "refused.txt").read_text().splitlines())
def test_what_is_wrong_is_refused_with_the_status_of_the_protocol(case: str) -> None:
    """403 for the key, 422 for another host's URLs, 400 for what is not understood."""
    status, _, told = case.partition(" ")
    assert refusal(**json.loads(told)) == int(status)


def test_what_is_too_long_or_too_much_is_refused() -> None:
    """A URL of 9,000 signs, and more than 10,000 URLs."""
    for urls in (["https://a.example/" + "x" * 9000], [f"https://a.example/{n}" for n in range(10_001)]):
        assert refusal(urlList=urls) == 400


def test_an_international_host_has_one_name_however_it_is_written() -> None:
    """Its pings are all one source's."""
    names = ("bücher.example", "BÜCHER.example", "xn--bcher-kva.example")
    found = [_post(host=one, urlList=[f"https://{other}/1"]) for one in names for other in names]
    assert {host for host, _ in found} == {"xn--bcher-kva.example"}


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
def test_a_notification_counts_only_with_its_signature(method: str) -> None:
    """By any method that WebSub knows, over the body as it came, with the secret of this topic and no other."""
    topic = "https://a.example/feed"
    form = subscription_form("http://me:1/", 3, topic, KEY)
    digits = hmac.new(form["hub.secret"].encode(), b"<feed/>", getattr(hashlib, method)).hexdigest()
    assert is_signed(f"{method}={digits}", b"<feed/>", topic, KEY)
    assert is_signed(f" {method.upper()}={digits.upper()}", b"<feed/>", topic, KEY)
    assert not is_signed(f"{method}={digits}", b"<feed />", topic, KEY)
    assert not is_signed(f"{method}={digits}", b"<feed/>", "https://a.example/other", KEY)
    assert not is_signed(f"{method}={digits[:-1]}\u00e9", b"<feed/>", topic, KEY)
    assert not is_signed(f"md5={digits}", b"<feed/>", topic, KEY)
    assert not is_signed(None, b"<feed/>", topic, KEY)
    assert form["hub.callback"] == f"http://me:1/websub/3/{callback_token(topic, KEY)}"
