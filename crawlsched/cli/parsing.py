"""Parsing: the common parts of all commands.

``--help`` ends with examples. ``--json`` without a file prints the report. The error for a misspelt command or option
suggests a similar name. A command that runs long shows its progress.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from time import monotonic
from typing import Any

from crawlsched.exceptions import CrawlschedError
from crawlsched.wording import say_duration

__all__ = [
    "AT_ONCE",
    "MATCHING",
    "MOST_SHOWN",
    "CommandParser",
    "Option",
    "add_command",
    "add_commands_below",
    "add_json_option",
    "confirm",
    "examples",
    "matched",
    "one_of",
    "option",
    "reader",
    "shown_progress",
    "whole_number",
]

#: Long runs show their progress each time they have done this number of rows or pages.
AT_ONCE = 10_000
#: A printed table has at most this number of rows.
MOST_SHOWN = 50
# The word after `--json` may be a URL. Only a word with one of these endings is the file to write.
_FILE_ENDINGS = (".json", ".json.gz")


class CommandParser(argparse.ArgumentParser):
    """The parser of a command, or the parser of all commands, whose help lists the commands in `groups`."""

    def __init__(self, *args: Any, groups: Mapping[str, Sequence[str]] | None = None, **named: Any) -> None:
        self._groups = groups
        named.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        # An abbreviated option is usually a mistake.
        named.setdefault("allow_abbrev", False)
        super().__init__(*args, **named)

    def format_help(self) -> str:
        """Return the help, with the commands in groups by purpose."""
        text = super().format_help()
        commands = next((action for action in self._actions if isinstance(action, argparse._SubParsersAction)), None)
        if self._groups is None or commands is None:
            return text
        helps = {action.dest: action.help for action in commands._choices_actions}
        listed = "\n\n".join(
            "\n".join([f"{title}:", *(f"  {name:<11}{helps[name]}" for name in names if name in helps)])
            for title, names in self._groups.items()
        )
        before, _, after = text.partition("commands:\n")
        return f"{before}{listed}\n\n{after[after.index('example') :]}"

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; if a command takes URLs, a word after ``--json`` is a file only if it ends in .json or .json.gz."""
        takes = self._get_positional_actions()
        if args is not None and takes and not isinstance(takes[0], argparse._SubParsersAction):
            args = _json_alone(args)
        found, left = super().parse_known_args(args, namespace)
        for name in (text.partition("=")[0] for text in left if text.startswith("--")):
            if near := get_close_matches(name, list(self._option_string_actions), n=1):
                self.error(f"There is no option {name}; did you mean {near[0]}?")
        return found, left


def _json_alone(args: Sequence[str]) -> list[str]:
    """Add ``=-`` to ``--json`` if no file follows.

    >>> _json_alone(["--json", "http://example.com/", "--visits", "3"])
    ['--json=-', 'http://example.com/', '--visits', '3']
    >>> _json_alone(["http://example.com/", "--json", "why.json"])
    ['http://example.com/', '--json', 'why.json']
    """
    following = [*args, ""][1:]
    return [
        "--json=-" if arg == "--json" and not after.endswith(_FILE_ENDINGS) else arg
        for arg, after in zip(args, following, strict=True)
    ]


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]
    """The commands of a parser; the error for an unknown command names a similar command."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        # `__call__` checks the name instead, with a better message.
        self.choices = None  # type: ignore[assignment]

    def add_parser(self, name: str, **named: Any) -> Any:
        """Add a command; its line in the list of commands is also the first line of its help."""
        meaning = named.get("help", "")
        named.setdefault("description", f"{meaning[:1].upper()}{meaning[1:]}{'' if meaning.endswith('?') else '.'}")
        return super().add_parser(name, **named)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        name = values[0]
        if name not in self._name_parser_map:
            near = get_close_matches(name, list(self._name_parser_map), n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self._name_parser_map)}."
            raise argparse.ArgumentError(None, f"There is no {str(self.metavar).lower()} {name!r}; {hint}")
        super().__call__(parser, namespace, values, option_string)


def add_commands_below(parser: argparse.ArgumentParser, title: str, metavar: str) -> Any:
    """Return the object to which `add_command` adds commands."""
    return parser.add_subparsers(
        title=title, metavar=metavar, required=True, prog=parser.prog, parser_class=CommandParser, action=_Commands
    )


def add_command(commands: Any, name: str, module: Any, common: argparse.ArgumentParser | None = None) -> None:
    """Add a command from a module with ``HELP``, ``EXAMPLES``, ``OPTIONS``, `report`, `say`, and optionally ``ABOUT``.

    Without `common` (see `common_options`) the command takes no database.
    """
    epilog = examples(*module.EXAMPLES, before=getattr(module, "ABOUT", ""))
    parser = commands.add_parser(name, help=module.HELP, parents=[common] if common else [], epilog=epilog)
    for add in module.OPTIONS:
        add(parser)
    if common is None:
        add_json_option(parser)
    parser.set_defaults(report=module.report, say=module.say)


#: A function that adds an option to a parser, or to a group of a parser.
Option = Callable[[Any], object]


def option(usage: str, meaning: str, read: Callable[[str], Any] | None = None, **named: Any) -> Option:
    """Return a function that adds an option (``--host HOST``; ``--yes``, without a value) or an argument (``URL``).

    `read` reads the option's value. For a wrong value it raises ValueError, whose message ends a sentence that begins
    with "it must be". Further arguments are passed to argparse's ``add_argument``.
    """
    name, _, metavar = usage.partition(" ")
    if not name.startswith("-"):
        name, metavar = named.pop("dest", name.lower()), name
    if name.startswith("-") and not metavar:
        named["action"] = "store_true"
    else:
        named["metavar"] = metavar
    if read is not None:
        named["type"] = reader(read)
    return lambda parser: parser.add_argument(name, help=meaning, **named)


def one_of(*options: Option, required: bool = False) -> Option:
    """Return a function that adds options of which only one may be given."""

    def add(parser: argparse.ArgumentParser) -> None:
        group = parser.add_mutually_exclusive_group(required=required)
        for one in options:
            one(group)

    return add


#: The options that select many pages.
MATCHING = (
    option("--pattern GLOB", "every URL that matches as a whole; * stands for anything"),
    option("--host HOST", "every page of a host, such as www.example.com"),
)


def matched(arguments: argparse.Namespace) -> tuple[str, str] | None:
    """Return kind and value of the given option of `MATCHING`; None if no such option was given."""
    if arguments.pattern is not None:
        return "pattern", arguments.pattern
    return None if arguments.host is None else ("host", arguments.host.lower())


def reader(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a reader for argparse; its error for a wrong value says which values are allowed."""

    def read_text(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            allowed = "a whole number" if read is int else "a number" if read is float else error
            raise argparse.ArgumentTypeError(f"must be {allowed}, got {text!r}.") from None

    return read_text


def whole_number(least: int, most: int = 10**9) -> Callable[[str], int]:
    """Return a reader of whole numbers.

    >>> whole_number(1)("12")
    12
    """
    allowed = f"a whole number, {least} or more" if most == 10**9 else f"a whole number from {least} to {most}"

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise ValueError(allowed)
        return int(text)

    return read


def confirm(question: str, *, is_meant: bool, refused: str) -> None:
    """Ask the user at a terminal, unless ``--yes`` was given; raise an error unless the answer is yes."""
    if is_meant:
        return
    if not sys.stdin.isatty():
        raise CrawlschedError(f"{question} Nothing was done, for there is no terminal to ask at; add --yes to do it.")
    print(f"{question} [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CrawlschedError(refused)


def add_json_option(group: Any) -> None:
    """Add ``--json [FILE]``."""
    group.add_argument(
        "--json",
        metavar="FILE",
        nargs="?",
        const="-",
        help="print one JSON object instead of text, or write it to FILE.json",
    )


def examples(*commands: str, before: str = "") -> str:
    """Return the end of a command's help.

    >>> print(examples("crawlsched status"))
    example:
      crawlsched status
    """
    heading = "example:" if len(commands) == 1 else "examples:"
    text = "\n".join([heading, *(f"  {command}" for command in commands)])
    return f"{before}\n\n{text}" if before else text


def shown_progress(name: str, first: float = 2.0, pause: float = 10.0) -> Callable[[int, int | None], None]:
    """Return a function of (done, total) that prints the progress of a run; `total` is None if it is not known.

    It prints a line after `first` seconds, then a line every `pause` seconds.
    """
    began = monotonic()
    following = began + first

    def show(done: int, total: int | None) -> None:
        nonlocal following
        now = monotonic()
        if now < following or done in (0, total):
            return
        following = now + pause
        if total is None:
            text = f"going on for {say_duration(now - began)}"
        else:
            left = (now - began) * (total - done) / done
            text = f"{done / total:.0%} done, about {say_duration(left)} left"
        print(f"{name}: {text}", file=sys.stderr, flush=True)

    return show
