"""What the spiders bring home."""

from dataclasses import dataclass


@dataclass
class ChangedPage:
    """A page as it was when it was found to be new or changed."""

    url: str
    title: str
    text: str
    found_at: float  # POSIX seconds
