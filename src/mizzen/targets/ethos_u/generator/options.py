"""Options of the code generator that only Ethos-U has, by name, as `--target-option` takes them.

A search tries them; to repeat what it found, give them on the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.machine.config import (
    EthosUConfiguration,
    Feature,
    Generator,
    Search,
    Setting,
)
from mizzen.targets.ethos_u.machine.system_config import ASKED, with_placing

DISABLE = "disable"
ALLOCATOR = "tensor-allocator"
REWRITE = "rewrite"
GENERATOR = "generator"
SEARCH = "search"

BETWEEN = "+"
"""Between several values of one option: a comma stands between options elsewhere."""

_Choice = TypeVar("_Choice", Generator, Search)
Change = Callable[[EthosUConfiguration, str], EthosUConfiguration]


def with_options(
    configuration: EthosUConfiguration, options: Mapping[str, str]
) -> EthosUConfiguration:
    """Return a configuration with options of the code generator.

    E225 for an option that there is not, E227 for an allocator, E260 for a feature that there is
    not, E577 for a generator or a search. Rewrites are names, which the rewriter knows.
    """
    for name, value in options.items():
        change = CHANGES.get(name)
        if change is None:
            raise fail(
                "E225",
                f"Ethos-U has the options {', '.join(CHANGES)} of its own, and {name} came",
                help="leave it out",
            )
        configuration = change(configuration, value)
        settings = (*configuration.settings, Setting(name, value, ASKED))
        configuration = replace(configuration, settings=settings)
    return configuration


def _disable(configuration: EthosUConfiguration, value: str) -> EthosUConfiguration:
    features = {feature.value: feature for feature in Feature}
    names = values_of(value)
    for name in names:
        if name not in features:
            raise fail(
                "E260",
                f"what the compiler must leave must be of {', '.join(features)}, not {name!r}",
                help=f"several are written as {DISABLE}=cascading{BETWEEN}buffering",
            )
    return replace(
        configuration, disabled=tuple(feature for feature in Feature if feature.value in names)
    )


def _place(configuration: EthosUConfiguration, value: str) -> EthosUConfiguration:
    return with_placing(configuration, value, configuration.tensor_alignment_bytes)


def _rewrite(configuration: EthosUConfiguration, value: str) -> EthosUConfiguration:
    return replace(configuration, rewrites=values_of(value))


def _generate(configuration: EthosUConfiguration, value: str) -> EthosUConfiguration:
    return replace(configuration, generator=_named(Generator, GENERATOR, value))


def _search(configuration: EthosUConfiguration, value: str) -> EthosUConfiguration:
    return replace(configuration, search=_named(Search, SEARCH, value))


def _named(choices: type[_Choice], what: str, value: str) -> _Choice:
    for choice in choices:
        if choice.value == value:
            return choice
    names = ", ".join(each.value for each in choices)
    raise fail("E577", f"--{what} must be one of {names}, not {value!r}")


CHANGES: dict[str, Change] = {
    DISABLE: _disable,
    REWRITE: _rewrite,
    ALLOCATOR: _place,
    GENERATOR: _generate,
    SEARCH: _search,
}
"""Every option, and what it changes."""


def values_of(text: str) -> tuple[str, ...]:
    """Take the values of an option apart."""
    return tuple(name.strip() for name in text.split(BETWEEN) if name.strip())
