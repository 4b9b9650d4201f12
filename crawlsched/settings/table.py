"""The table of settings in the documentation: the ten that people set, and the others in four groups."""

from crawlsched.settings.settings import PREFIX, SETTINGS

__all__ = ["GROUPS", "markdown_table"]

#: What stands in which group, by the beginnings of names, the first that fits; the rest stands in the last one.
GROUPS: dict[str, tuple[str, ...]] = {
    "The ten that people set": (
        *("BANDWIDTH", "DATABASE_URL", "COLLECTION", "PAGES", "FINGERPRINT_DROP", "FINGERPRINTS", "KEPT_TEXT_BYTES"),
        *("SOURCE_URLS", "ONE_PASS", "WEB"),
    ),
    "Which page goes, and when": (
        *("CRAWL_VALUE", "ESTIMATOR", "DISCOVERY", "IMPORTANCE", "HOST_SHARES", "ERROR_INTERVAL", "STARTS_FIRST"),
        *("MAX_PAGES", "IGNORE_PARAMETERS"),
    ),
    "What counts as a change, and what is delivered": (
        *("FINGERPRINT", "PROBES", "MIN_CHANGE", "CONDITIONAL", "CALLBACK", "WITHHOLD"),
    ),
    "Announcements": ("SOURCE", "SITEMAP", "FIND_SOURCES", "RECEIVER"),
    "The crawl and its database": ("",),
}


def markdown_table() -> str:
    """Return all settings as they stand in docs/reference/settings.md: a heading and a table for each group."""
    first, *others = GROUPS
    rows: dict[str, list[str]] = {title: [] for title in GROUPS}
    for setting in SETTINGS:
        name = setting.name.removeprefix(PREFIX)
        is_one_of_ten = name in GROUPS[first]
        title = first if is_one_of_ten else next(title for title in others if name.startswith(GROUPS[title]))
        rows[title].append(f"| `{setting.name}` | `{setting.default!r}` | {setting.meaning} |")
    head = "| Setting | Default | Meaning |\n| --- | --- | --- |"
    return "\n\n".join("\n".join([f"## {title}\n", head, *found]) for title, found in rows.items())
