"""The items of the spiders."""

from dataclasses import dataclass


@dataclass
class ChangedPage:
    """A page's state when a visit found it new or changed."""

    url: str
    title: str
    text: str
    found_at: float  # POSIX seconds
