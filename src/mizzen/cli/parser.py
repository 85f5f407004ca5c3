"""The words of the command line: verbs, options, and errors as diagnostics.

Options are spelled as Vela spells them (``--accelerator-config``); the underscores that other
tools use (``--accelerator_config``) mean the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from mizzen import __version__
from mizzen.cli import check, compile, conformance, inspect, lower, run, targets
from mizzen.diagnostics import fail

VERBS = (compile, run, check, lower, inspect, conformance, targets)
DESCRIPTION = """\
Compile networks for Arm Ethos-U and Ethos-N NPUs, and run the compiled
command stream bit-exactly on this machine."""
EPILOG = """\
exit status: 0 what was asked holds, 1 it does not (over a budget), 2 the input
or the command line is wrong, 3 a bug of Mizzen."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are diagnostics like all others."""

    def __init__(self, **keywords: object) -> None:
        super().__init__(
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **keywords,  # pyright: ignore[reportArgumentType] - argparse's own keywords, untyped here
        )

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        raise fail("E200", f"the command line is wrong: {message}", help=f"{self.prog} --help")


def make_parser() -> Parser:
    """Make the parser of the whole command line."""
    return _make_parsers()["mizzen"]


def help_texts() -> dict[str, str]:
    """Return what `--help` prints, for the program and each verb: ``mizzen compile`` -> text."""
    return {name: parser.format_help() for name, parser in _make_parsers().items()}


def _make_parsers() -> dict[str, Parser]:
    parser = Parser(prog="mizzen", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"mizzen {__version__}")
    verbs = parser.add_subparsers(
        title="verbs", metavar="VERB", required=True, parser_class=Parser, prog="mizzen"
    )
    parsers = {"mizzen": parser}
    for verb in VERBS:
        name = verb.__name__.rpartition(".")[2]
        verb_parser = verbs.add_parser(name, help=verb.SUMMARY, description=verb.__doc__)
        verb.add_options(verb_parser)
        verb_parser.add_argument(
            "--json", action="store_true", help="one JSON document on stdout, the rest on stderr"
        )
        verb_parser.set_defaults(execute=verb.execute)
        parsers[f"mizzen {name}"] = verb_parser
    return parsers


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line that `normalise` gave."""
    return make_parser().parse_args(words)


def normalise(words: Sequence[str]) -> list[str]:
    """Spell option names with dashes, as both spellings are in use; values stay as they are."""
    return [_dashed(word) if word.startswith("--") else word for word in words]


def _dashed(word: str) -> str:
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value
