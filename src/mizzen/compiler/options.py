"""What a user asks of a compilation, and what of the configuration in force is shown."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Protocol, TypedDict

from mizzen.boards import board_names
from mizzen.compiler.proof.options import Effort, ProofOptions, effort_of
from mizzen.compiler.source import Shapes
from mizzen.diagnostics import Diagnostic, did_you_mean, fail

ConfigFiles = str | PathLike[str] | Sequence[str | PathLike[str]] | None

DEFAULT_ACCELERATOR = "ethos-u55-256"
"""Vela's default. Ref: Vela 5.2, OPTIONS.md, Accelerator Configuration."""


class SystemKeywords(TypedDict, total=False):
    """Options of a compilation, as keywords of Python functions.

    board             the name or the file of a board: its NPU, memories and clocks are the default
    clock_hz          of the NPU, for what is told of time; else the board's or the configuration's
    config            a `vela.ini`, or several
    arena_cache_size  SRAM that the compiler may plan with, in bytes
    target_options    options that only one family has, by name
    prove             how much to prove of what is compiled: ``off``, ``quick`` or ``thorough``
    allow_inexact     whether operators that the compiler gets wrong stay on the NPU
    """

    board: str | None
    clock_hz: float | None
    config: ConfigFiles
    system_config: str | None
    memory_mode: str | None
    optimise: str
    arena_cache_size: int | None
    target_options: Mapping[str, str] | None
    prove: str
    allow_inexact: bool


class CompileKeywords(SystemKeywords, total=False):
    """The options that files of networks have besides.

    ignore_ops  types of operators that stay on the CPU
    shapes      extents that an ONNX network leaves open, by the name of an input or of an extent
    """

    ignore_ops: Sequence[str]
    shapes: Shapes | None


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """What a user asks for; what is left out, the backend chooses.

    accelerator       None for the default: the board's, where one is named
    board             the name or the file of a board
    clock_hz          of the NPU, for what is told of time
    arena_cache_size  SRAM that the compiler may plan with, in bytes
    ignore_ops        types of operators that stay on the CPU
    target_options    options that only one family has, by name
    prove             how much to prove of what is compiled: ``off``, ``quick`` or ``thorough``
    allow_inexact     whether operators that the compiler gets wrong stay on the NPU
    shapes            extents that an ONNX network leaves open
    """

    accelerator: str | None = None
    config: ConfigFiles = None
    system_config: str | None = None
    memory_mode: str | None = None
    optimise: str = "Performance"
    arena_cache_size: int | None = None
    ignore_ops: Sequence[str] = ()
    target_options: Mapping[str, str] | None = field(default_factory=dict[str, str])
    prove: str = Effort.QUICK.value
    allow_inexact: bool = False
    shapes: Shapes | None = None
    board: str | None = None
    clock_hz: float | None = None

    @property
    def accelerator_name(self) -> str:
        """The accelerator asked for, or the default."""
        return self.accelerator or DEFAULT_ACCELERATOR

    @property
    def proof(self) -> ProofOptions:
        """What to prove. E228 for a word that does not say."""
        return ProofOptions(effort_of(self.prove), self.allow_inexact)

    def refuse_target_options(self, family: str) -> None:
        """Refuse options of one family only, of which this one has none. E225."""
        if self.target_options:
            raise fail(
                "E225",
                f"{family} has no options of its own, and {', '.join(self.target_options)} came",
                help="leave out --target-option",
            )


def options_of(
    accelerator: object,
    options: Mapping[str, Any],
    known: type[SystemKeywords],
    function: Callable[..., Any],
) -> CompileOptions:
    """Return what the keywords of a function ask for.

    known     the options that it takes besides its own parameters
    function  whose keywords they are

    E210 for an accelerator that is no name, E229 for a keyword that it does not have.
    """
    own = [each.name for each in inspect.signature(function).parameters.values()
           if each.kind is not each.VAR_KEYWORD]  # fmt: skip
    names = [*own, *known.__annotations__]
    for name in options:
        if name not in names:
            raise fail(
                "E229",
                f"{function.__name__} must be given options that it has, and {name!r} is none of "
                f"them: {', '.join(names)}",
                help=did_you_mean(name, names),
            )
    if not isinstance(accelerator, str | None):
        raise fail(
            "E210",
            "the accelerator must be named by a str, such as 'ethos-u55-128', and one of type "
            f"{type(accelerator).__name__} came",
            help=f"the arguments of {function.__name__} are {', '.join(own[:3])}, in this order",
        )
    if accelerator in board_names():
        raise fail(
            "E210",
            f"the accelerator must be an NPU's name, and {accelerator!r} is a board's",
            help=f"board={accelerator!r}",
        )
    return CompileOptions(accelerator, **options)


@dataclass(frozen=True, slots=True)
class ConfigurationLine:
    """A part of the configuration in force: a number is one of bytes."""

    label: str
    value: str | int
    is_default: bool = False


class Configuration(Protocol):
    """The configuration in force."""

    @property
    def ignore_ops(self) -> tuple[str, ...]:
        """Types of operators that stay on the CPU because the user said so."""
        ...

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What is in doubt about it."""
        ...

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON-ready data, the accelerator's name among it."""
        ...
