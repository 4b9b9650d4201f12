"""Credentials: cookies and Authorization headers of a spider's requests, which need not be written down."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from crawlsched.crawl.request_templates import RequestTemplate

__all__ = ["Credentials"]

logger = logging.getLogger(__name__)

_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
# In the place of what was left out, so that a request is never sent without it.
_LEFT_OUT = "credentials_left_out"


class Credentials:
    """Whether credentials are written down; if not, this run's are known here, and pages may wait for theirs.

    Examples
    --------
    >>> data = {"callback": "parse", "cookies": {"session": "s3cret"}}
    >>> credentials = Credentials(keep=False)
    >>> credentials.to_write(RequestTemplate(data))
    {'callback': 'parse', 'credentials_left_out': True}
    >>> credentials.complete(RequestTemplate(data).digest, {"callback": "parse", "credentials_left_out": True}) == data
    True
    >>> credentials.complete(b"of an earlier run", {"credentials_left_out": True}) is None
    True
    """

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        #: Pages that wait until the spider asks for them again.
        self.waiting: set[int] = set()
        self._known: dict[bytes, Mapping[str, Any]] = {}
        self._was_said = False

    def to_write(self, template: RequestTemplate) -> dict[str, Any]:
        """Return what is written down of a template that the spider's request has."""
        bare = without_credentials(template.data)
        if bare is None:
            return template.data
        if self.keep:
            if not self._was_said:
                self._was_said = True
                logger.info(
                    "Requests of this spider carry cookies or Authorization headers, which stand in the database, "
                    "as their pages could not be visited again without; CRAWLSCHED_KEEP_CREDENTIALS = False leaves "
                    "them out (this is said once)."
                )
            return template.data
        self._known[template.digest] = template.data
        return bare

    def complete(self, digest: bytes | None, data: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return a template with its credentials; None if they are not known in this run."""
        if not data or _LEFT_OUT not in data:
            return data or {}
        return None if digest is None else self._known.get(digest)


def without_credentials(data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a template's data without cookies and Authorization headers; None if it has none.

    >>> without_credentials({"headers": [["Authorization", "Bearer x"], ["X-Own", "1"]]})
    {'headers': [['X-Own', '1']], 'credentials_left_out': True}
    >>> without_credentials({"callback": "parse"})
    """
    headers = data.get("headers") or []
    others = [pair for pair in headers if str(pair[0]).lower() not in _HEADERS]
    if not data.get("cookies") and len(others) == len(headers):
        return None
    bare = {name: value for name, value in data.items() if name not in ("cookies", "headers")}
    if others:
        bare["headers"] = others
    return {**bare, _LEFT_OUT: True}
