"""An extension that writes the crawl's statistics into a file when it ends, for the demo to read."""

import json
from pathlib import Path

from scrapy import signals
from scrapy.exceptions import NotConfigured


class FinalStats:
    """Write all statistics as one JSON object into the file that ``FINAL_STATS_FILE`` names."""

    def __init__(self, path, stats):
        self.path, self.stats = path, stats

    @classmethod
    def from_crawler(cls, crawler):
        path = crawler.settings.get("FINAL_STATS_FILE")
        if not path:
            raise NotConfigured
        extension = cls(Path(path), crawler.stats)
        # The last signal of a crawl: all counts are final by then.
        crawler.signals.connect(extension.write, signals.engine_stopped)
        return extension

    def write(self):
        self.path.write_text(json.dumps(self.stats.get_stats(), indent=1, sort_keys=True, default=str))
