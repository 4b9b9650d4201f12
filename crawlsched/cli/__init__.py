"""The command line (``crawlsched status``, ``crawlsched why URL``, and so on), with one file for each command.

A command's module has ``HELP``, ``EXAMPLES``, ``OPTIONS`` and two functions. `report` does the work and returns a
dictionary, which ``--json`` prints. `say` turns that dictionary into text.
"""

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from crawlsched import __version__
from crawlsched.cli.parsing import CommandParser, add_command, add_commands_below, examples
from crawlsched.cli.table_files import write_text
from crawlsched.exceptions import CrawlschedError, require_posix
from crawlsched.showing import in_words, shown, without_secrets

__all__ = ["add_commands", "main", "run"]

# The commands in groups by purpose. Each module has the name of its command, except `importing`.
_GROUPS = {
    "look": ("status", "why", "pages", "next", "changes", "sources", "withheld", "whatif", "check", "web"),
    "steer": ("bandwidth", "recrawl", "signal", "forget"),
    "move data": ("import", "export"),
    "look after the database": ("db",),
    "try out, without a crawl": ("replay", "detect", "simulate"),
}
_COMMANDS = tuple(name for names in _GROUPS.values() for name in names)
_MODULE_OF = {"import": "importing"}
_WITHOUT_DATABASE = ("replay", "detect", "simulate")
_SHELLS = ("bash", "zsh", "tcsh")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, and return the exit code: 0 for success, or 1 after an error message on standard error.

    Wrong arguments end the program with 2.
    """
    parser = CommandParser(
        prog="crawlsched",
        description="Look at and steer crawls that keep pages fresh at a fixed bandwidth.",
        epilog=examples("crawlsched status", "crawlsched why https://example.com/news/1"),
        groups=_GROUPS,
    )
    parser.add_argument("--version", action="version", version=f"crawlsched {__version__}")
    parser.add_argument("--completion", metavar="SHELL", choices=_SHELLS, help=f"print what {', '.join(_SHELLS)} need")
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["--completion"]:
        return _print_completion(parser, given)
    # Only the named command is loaded, since loading all commands takes as long as running most commands.
    if given[:1] != ["--version"]:
        add_commands(parser, only=given[0] if given else "")
    return run(parser.parse_args(given))


def add_commands(parser: argparse.ArgumentParser, only: str = "") -> None:
    """Add every command to a parser, or only the command `only`; the parsed arguments are for `run`."""
    # Imported here, since loading the settings takes longer than all imports above.
    from crawlsched.cli.target import common_options

    commands = add_commands_below(parser, "commands", "COMMAND")
    for name in (only,) if only in _COMMANDS else _COMMANDS:
        module = import_module(f"crawlsched.cli.{_MODULE_OF.get(name, name)}")
        if name == "db":
            below = commands.add_parser(name, help=module.HELP, epilog=examples(*module.EXAMPLES))
            module.add_actions(below)
        else:
            add_command(commands, name, module, None if name in _WITHOUT_DATABASE else common_options())


def _print_completion(parser: argparse.ArgumentParser, given: list[str]) -> int:
    add_commands(parser)
    shell = parser.parse_args([*given, "status"]).completion
    try:
        import shtab
    except ImportError:
        print("--completion needs shtab, which is missing; install crawlsched[completion].", file=sys.stderr)
        return 1
    print(shtab.complete(parser, shell=shell))
    return 0


def run(arguments: argparse.Namespace, settings: Mapping[str, Any] | None = None) -> int:
    """Run the parsed command; `settings` are the Scrapy project's, if Scrapy runs the command."""
    arguments.project_settings = settings
    try:
        require_posix()
        report = arguments.report(arguments)
        as_json = None if arguments.json is None else json.dumps(_plain(report), indent=2)
        if as_json is not None and arguments.json != "-":
            write_text(Path(arguments.json), f"{as_json}\n")
            as_json = None
        text = arguments.say(report) if as_json is None else as_json
        if text:
            # Texts of sites (URLs, texts of pages, lines of robots.txt) must not send control characters to the
            # terminal.
            print(shown(text), flush=True)
    except CrawlschedError as error:
        print(shown(str(error)), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return _nobody_reads()
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        # The cause may be an unforeseen argument or a damaged row, so a sentence is more useful than a traceback.
        words = without_secrets(shown(in_words(error)))
        print(f"This cannot be done: {words}. (python -X dev -m crawlsched.cli ... shows where.)", file=sys.stderr)
        return 1

    return int(getattr(arguments, "exit_code", 0))  # `check` sets an exit code when it finds a problem


def _nobody_reads() -> int:
    # The reader of our output, such as `head`, has closed the pipe. Python would fail again when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _plain(value: Any) -> Any:
    """Replace values that JSON cannot hold (infinity, nan, numpy's numbers)."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "tolist"):  # an array or a number of numpy's
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
