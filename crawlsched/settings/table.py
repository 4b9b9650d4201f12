"""The table of settings in the documentation, in four groups."""

from crawlsched.settings.settings import PREFIX, SETTINGS

__all__ = ["GROUPS", "markdown_table"]

#: What stands in which group, by the beginnings of names; whatever begins otherwise stands in the first one.
GROUPS: dict[str, tuple[str, ...]] = {
    "The crawl and its database": (),
    "Which page goes, and when": (
        *(
            "CRAWL_VALUE",
            "ESTIMATOR",
            "MIN_CRAWL",
            "MAX_CRAWL",
            "DISCOVERY_SHARE",
            "IMPORTANCE",
            "PAGES",
            "MAX_PAGES",
            "IGNORE_PARAMETERS",
        ),
        *("HOST_SHARES", "GONE_INTERVAL", "ERROR_INTERVAL", "REPLAN_INTERVAL", "STARTS_FIRST"),
    ),
    "What counts as a change, and what is delivered": (
        *("FINGERPRINT", "MAX_TEXT", "PROBES", "MIN_CHANGE", "KEPT_TEXT", "WRONG_PAGES", "CONDITIONAL", "VALIDATOR"),
        *("CALLBACK", "UNTRACKED", "WITHHOLD"),
    ),
    "Announcements": ("SOURCE", "SITEMAP", "SIGNAL", "RECEIVER", "WEBSUB"),
}


def markdown_table() -> str:
    """Return all settings as they stand in docs/reference/settings.md: a heading and a table for each group."""
    first, *_ = GROUPS
    rows: dict[str, list[str]] = {title: [] for title in GROUPS}
    for setting in SETTINGS:
        name = setting.name.removeprefix(PREFIX)
        title = next((title for title, begin in GROUPS.items() if begin and name.startswith(begin)), first)
        rows[title].append(f"| `{setting.name}` | `{setting.default!r}` | {setting.meaning} |")
    head = "| Setting | Default | Meaning |\n| --- | --- | --- |"
    return "\n\n".join("\n".join([f"## {title}\n", head, *found]) for title, found in rows.items())
