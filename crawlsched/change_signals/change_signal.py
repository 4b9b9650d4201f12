"""A ChangeSignal: one announcement that a page may have changed."""

from dataclasses import dataclass

__all__ = ["SOURCE_KINDS", "ChangeSignal", "FurtherRow"]

SOURCE_KINDS = ("sitemap", "feed", "ping")
"""Where a ChangeSignal can come from."""


@dataclass(frozen=True, slots=True)
class ChangeSignal:
    """An announcement that a page may have changed.

    Parameters
    ----------
    url : str
        The page which may have changed.
    time : float
        When the announcement was read, in POSIX seconds. It is this time that counts, since a `lastmod` often lags
        publishing by days.
    source : str
        What announced it: the URL of the sitemap or feed, or the name of the sender of a ping.
    kind : {"sitemap", "feed", "ping"}
        The kind of the source.
    lastmod : float, optional
        When the source says that the page changed, in POSIX seconds; None if it does not say.

    Raises
    ------
    ValueError
        If `kind` is no known kind of source.

    Examples
    --------
    >>> ChangeSignal("https://example.com/a", 1_795_000_000.0, "https://example.com/sitemap.xml").kind
    'sitemap'
    """

    url: str
    time: float
    source: str
    kind: str = "sitemap"
    lastmod: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in SOURCE_KINDS:
            raise ValueError(f"kind is {self.kind!r}; a ChangeSignal comes from one of {', '.join(SOURCE_KINDS)}.")


#: What a source beside a page's first one announced of it, as a row that a store keeps: n_signals, n_signals_total,
#: signalled_since, n_heard, signalled_at (None: never), true_signals and false_signals.
FurtherRow = tuple[int, int, float, int, float | None, float, float]
