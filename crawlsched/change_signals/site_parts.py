"""Parts of a site: pages below one first directory, which one program mostly makes and one program announces."""

from urllib.parse import urlsplit

__all__ = ["part_of_site"]


def part_of_site(url: str) -> str:
    """Return the first directory of a URL's path.

    Examples
    --------
    >>> part_of_site("https://example.com/news/2026/tea.html"), part_of_site("https://example.com/about.html")
    ('/news/', '/')
    """
    try:
        directories = urlsplit(url).path.split("/")[1:-1]
    except ValueError:
        return "/"
    return f"/{directories[0]}/" if directories else "/"
