"""The words of the command line: verbs, options, and errors as diagnostics.

Options are spelled as Vela spells them (``--accelerator-config``); the underscores that other
tools use (``--accelerator_config``) mean the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any, NoReturn

from mizzen import __version__
from mizzen.cli import (
    calibrate,
    check,
    compare,
    compile,
    conformance,
    diff,
    doctor,
    emulate,
    evaluate,
    export,
    generate,
    inspect,
    lower,
    mesh,
    quantize,
    report,
    run,
    targets,
    tune,
)
from mizzen.diagnostics import did_you_mean, fail

EVERYDAY = (check, compile, run, report, compare, export)
VERBS = (
    *EVERYDAY,
    quantize,
    evaluate,
    generate,
    tune,
    emulate,
    diff,
    calibrate,
    doctor,
    inspect,
    lower,
    targets,
    conformance,
)
GROUPS = (mesh,)
"""Verbs of two words: ``mizzen mesh map``."""

DESCRIPTION = """\
Compile networks for Arm Ethos-U and Ethos-N NPUs, and run the compiled
command stream bit-exactly on this machine.

  mizzen compile net.tflite --accelerator-config ethos-u55-128
  mizzen run output/net_vela.tflite --input samples.npy"""
EPILOG = """\
`mizzen help VERB` explains a verb.

exit status: 0 what was asked holds, 1 it does not (a budget, a difference),
2 the input or the command line is wrong, 3 a bug of Mizzen"""
HELP = "help"
"""``mizzen help compile`` is ``mizzen compile --help``."""


class HelpLines(argparse.RawDescriptionHelpFormatter):
    """Names an option's value once, as Python does since 3.13: ``-o, --output FILE``."""

    if sys.version_info < (3, 13):

        def _format_action_invocation(self, action: argparse.Action) -> str:
            if not action.option_strings or action.nargs == 0:
                return super()._format_action_invocation(action)
            value = self._format_args(action, self._get_default_metavar_for_optional(action))
            return f"{', '.join(action.option_strings)} {value}"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are diagnostics like all others."""

    def __init__(self, **keywords: object) -> None:
        super().__init__(
            allow_abbrev=False,
            formatter_class=HelpLines,
            **keywords,  # pyright: ignore[reportArgumentType] - argparse's own keywords, untyped here
        )

    @property
    def option_names(self) -> list[str]:
        """The options that this parser takes, with their dashes."""
        return [name for action in self._actions for name in action.option_strings]

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        raise fail("E200", f"the command line is wrong: {message}", help=f"{self.prog} --help")


class Program(Parser):
    """The parser of the whole command line, whose help lists the verbs in groups."""

    def format_help(self) -> str:
        """Return the help of the program."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        more = [verb for verb in (*VERBS, *GROUPS) if verb not in EVERYDAY]
        for title, verbs in (("everyday verbs", EVERYDAY), ("more verbs", more)):
            formatter.start_section(title)
            formatter.add_arguments(
                argparse.Action([], name_of(verb), metavar=name_of(verb), help=verb.SUMMARY)
                for verb in verbs
            )
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments(action for action in self._actions if action.option_strings)
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


def name_of(verb: ModuleType) -> str:
    """Return the word that a verb is called by."""
    return verb.__name__.rpartition(".")[2]


def make_parser() -> Parser:
    """Make the parser of the whole command line."""
    return _make_parsers(VERBS)["mizzen"]


def help_texts() -> dict[str, str]:
    """Return the texts of `--help`, for the program and each verb: ``mizzen compile`` -> text."""
    return {name: parser.format_help() for name, parser in _make_parsers(VERBS).items()}


@cache
def _make_parsers(modules: tuple[ModuleType, ...]) -> Mapping[str, Parser]:
    """Return the parsers of the program and of each verb; they keep nothing of what they parse."""
    parser = Program(prog="mizzen", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("-V", "--version", action="version", version=f"mizzen {__version__}")
    verbs = parser.add_subparsers(
        title="verbs", metavar="VERB", required=True, parser_class=Parser, prog="mizzen"
    )
    parsers: dict[str, Parser] = {"mizzen": parser}
    for verb in modules:
        _add_verb(verbs, verb, "mizzen", parsers)
    for group in GROUPS:
        name = f"mizzen {name_of(group)}"
        group_parser = verbs.add_parser(
            name.rpartition(" ")[2],
            help=group.SUMMARY,
            description=group.__doc__,
        )
        parsers[name] = group_parser
        inner = group_parser.add_subparsers(
            title="verbs", metavar="VERB", required=True, parser_class=Parser, prog=name
        )
        for verb in group.VERBS:
            _add_verb(inner, verb, name, parsers)
    return MappingProxyType(parsers)


def _add_verb(verbs: Any, verb: ModuleType, before: str, parsers: dict[str, Parser]) -> None:
    name = name_of(verb)
    parser = verbs.add_parser(name, help=verb.SUMMARY, description=verb.__doc__)
    verb.add_options(parser)
    parser.add_argument(
        "--json", action="store_true", help="one JSON document on stdout, the rest on stderr"
    )
    parser.add_argument("--quiet", action="store_true", help="only warnings and errors on stderr")
    parser.set_defaults(module=verb)
    parsers[f"{before} {name}"] = parser


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line that `normalise` gave. E200 if it is wrong, with what may be meant."""
    parsers = _make_parsers(VERBS)
    if words[:1] == [HELP]:
        words = [*words[1:], "--help"]
    path = _known_verb(parsers, [word for word in words if not word.startswith("-")])
    options, unknown = parsers["mizzen"].parse_known_args(words)
    if unknown:
        parser = parsers[path]
        raise fail(
            "E200",
            f"the command line is wrong: {parser.prog} does not take {' '.join(unknown)}",
            help=did_you_mean(unknown[0].partition("=")[0], parser.option_names)
            or f"{parser.prog} --help",
        )
    return options


def without_verb(words: Sequence[str]) -> str | None:
    """Return the help of `mizzen` or of a group where nothing else stands on the line."""
    path = " ".join(("mizzen", *words))
    groups = ("mizzen", *(f"mizzen {name_of(group)}" for group in GROUPS))
    return _make_parsers(VERBS)[path].format_help().rstrip("\n") if path in groups else None


def _known_verb(parsers: Mapping[str, Parser], words: Sequence[str]) -> str:
    """Return the verb that words begin with: ``mizzen mesh map``. E200 for another word."""
    path = "mizzen"
    for word in words:
        names = [name.rpartition(" ")[2] for name in parsers if name.rpartition(" ")[0] == path]
        if not names:
            break
        if word not in names:
            raise fail(
                "E200",
                f"the command line is wrong: the verb must be {', '.join(names)}, not {word!r}",
                help=did_you_mean(word, names) or f"{path} --help",
            )
        path = f"{path} {word}"
    return path


def normalise(words: Sequence[str]) -> list[str]:
    """Spell option names with dashes, as both spellings are in use; values stay as they are."""
    return [_dashed(word) if word.startswith("--") else word for word in words]


def _dashed(word: str) -> str:
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value
