"""``crawlsched completion SHELL``: what a shell needs to complete commands and options."""

import argparse
from typing import Any

from crawlsched.cli.parsing import add_json_option, examples
from crawlsched.exceptions import CrawlschedError

__all__ = ["add_parser", "report", "say"]

_SHELLS = ("bash", "zsh", "tcsh")


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "completion",
        help="print what a shell needs to complete commands and options",
        epilog=examples("crawlsched completion bash > ~/.local/share/bash-completion/completions/crawlsched"),
    )
    parser.add_argument("shell", metavar="SHELL", choices=_SHELLS, help=", ".join(_SHELLS))
    add_json_option(parser)
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Make it of the parser of all commands."""
    try:
        import shtab
    except ImportError as error:
        raise CrawlschedError("Completion needs shtab, which is missing; install crawlsched[completion].") from error
    return {"shell": arguments.shell, "script": shtab.complete(arguments.whole_parser, shell=arguments.shell)}


def say(report: dict[str, Any]) -> str:
    """Print it."""
    return str(report["script"])
