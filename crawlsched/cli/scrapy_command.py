"""``scrapy crawlsched ...``: the same commands under the command ``scrapy``."""

import argparse
from typing import Any

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.utils.project import inside_project

from crawlsched.cli import add_commands, run

__all__ = ["Command"]


class Command(ScrapyCommand):
    """The Scrapy command, which Scrapy finds through the entry point ``scrapy.commands``."""

    # Nothing is crawled, so neither a crawler nor a reactor is needed.
    requires_crawler_process = False

    def syntax(self) -> str:
        """Return the text after the command's name in the line of usage."""
        return "COMMAND [options]"

    def short_desc(self) -> str:
        """Return the line in Scrapy's list of commands."""
        return "Look at and steer crawls that keep pages fresh"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add Scrapy's own options and our commands."""
        super().add_options(parser)
        # Scrapy prints its own line of usage; the sub-parsers need the command's name, too.
        parser.prog = "scrapy crawlsched"
        add_commands(parser)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Apply each -s, before and after the command's name, and refuse unknown arguments."""
        if args:
            raise UsageError(f"unrecognized arguments: {' '.join(args)}")
        opts.set = [*opts.set, *getattr(opts, "set_here", [])]
        super().process_options(args, opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the command."""
        settings: Any = self.settings
        # Outside of a project, no setting of Scrapy names a database.
        is_project = inside_project() or settings.get("CRAWLSCHED_DATABASE_URL") is not None
        self.exitcode = run(opts, settings if is_project else None)
