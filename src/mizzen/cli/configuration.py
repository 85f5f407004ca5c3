"""The options that choose an accelerator and its system, shared by the verbs; reading files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from mizzen.cli.layout import read_size
from mizzen.compiler.options import DEFAULT_ACCELERATOR
from mizzen.compiler.proof.options import Effort
from mizzen.compiler.source import Extents, read_shapes
from mizzen.diagnostics import fail, unreadable

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.boards import Board
    from mizzen.cli.console import Console
    from mizzen.compiler.backend import ResolvedTarget
    from mizzen.compiler.options import CompileOptions


def read_file(path: Path) -> bytes:
    """Return a file's contents. E110 if it cannot be read."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


class Options(Protocol):
    """What takes options: a parser, or a group of its help."""

    def add_argument(self, *names: str, **form: Any) -> argparse.Action:
        """Add an option, as `argparse` does."""
        ...


class Keywords(TypedDict):
    """What the options say, as keywords of `mizzen.compile` and `mizzen.check`."""

    accelerator: str | None
    board: str | None
    clock_hz: int | None
    config: tuple[str, ...] | None
    system_config: str | None
    memory_mode: str | None
    optimise: str
    arena_cache_size: int | None
    ignore_ops: tuple[str, ...]
    target_options: dict[str, str]
    prove: str
    allow_inexact: bool
    shapes: Extents


def add_configuration_options(parser: argparse.ArgumentParser, action: str = "store") -> None:
    """Add the options, spelled as Vela spells them.

    action  "append" for a verb that takes several accelerators and memory modes
    """
    group = parser.add_argument_group("configuration")
    add_board_option(group, BOARD)
    _add_machine_options(group, action)
    group.add_argument(
        "--optimise",
        metavar="{Performance,Size}",
        default="Performance",
        help="for Ethos-U: fewer cycles, or less memory (default: %(default)s)",
    )
    _add_cache_option(group)
    group.add_argument(
        "--ignore-ops",
        metavar="OP[,OP...]",
        type=names_list,
        default=(),
        help="types of operators to keep on the CPU, for instance SOFTMAX",
    )
    group.add_argument(
        "--target-option",
        metavar="NAME=VALUE",
        type=name_and_value,
        action="append",
        default=[],
        help="an option of one NPU family only; may be given several times",
    )
    add_shape_option(group)
    group.add_argument(
        "--prove",
        metavar="{off,quick,thorough}",
        default=Effort.QUICK.value,
        help="execute the artifact and compare it with the integer reference: quick on 4 to 16 "
        "inputs, thorough on 64 (default: %(default)s)",
    )
    group.add_argument(
        "--allow-inexact",
        action="store_true",
        help="leave operators on the NPU whose results differ from the reference, with a warning",
    )
    _add_generator_options(parser)


BOARD = (
    "a board that is built in, or a file .toml of your own: its NPU and memories are the default; "
    "`mizzen targets` lists them"
)


def add_board_option(group: Options, help: str, *, required: bool = False) -> None:
    """Add the option for a board."""
    group.add_argument("--board", metavar="NAME|FILE.toml", required=required, help=help)


def board_of(options: argparse.Namespace) -> Board | None:
    """Return the board that is asked about. E410 to E414, E443 for one that is not."""
    if options.board is None:
        return None
    from mizzen.boards import find_board

    return find_board(options.board)


def require_on_board(options: argparse.Namespace, artifact: Artifact) -> None:
    """Refuse an artifact for an NPU that the board of the command line has not. E415, E442."""
    board = board_of(options)
    if board is not None and artifact.accelerator is not None:
        board.require_npu(artifact.accelerator)


def add_shape_option(group: Options) -> None:
    """Add the one that says what an ONNX network leaves open."""
    group.add_argument(
        "--shape",
        metavar="NAME=N[,N...]",
        action="append",
        default=[],
        help="for ONNX: an open dimension by its name, batch=1, or an input's whole shape, "
        "input=1,3,96,96; may be given several times (default: a batch of 1)",
    )


def add_system_options(parser: argparse.ArgumentParser, description: str) -> None:
    """Add those that say which NPU in which system."""
    group = parser.add_argument_group("configuration", description)
    _add_machine_options(group, "store")
    _add_cache_option(group)
    add_shape_option(group)


def system_options(options: argparse.Namespace) -> CompileOptions:
    """Return what `add_system_options` says, and defaults for all else."""
    from mizzen.compiler.options import CompileOptions

    return CompileOptions(
        options.accelerator_config,
        config=tuple(options.config) if options.config else None,
        system_config=options.system_config,
        memory_mode=options.memory_mode,
        arena_cache_size=options.arena_cache_size,
        shapes=read_shapes(options.shape),
    )


def _add_machine_options(group: Options, action: str) -> None:
    group.add_argument(
        "--accelerator-config",
        metavar="NAME",
        action=action,
        help="the NPU, for instance ethos-u55-128 or ethos-n78-4tops-4ple; `mizzen targets` lists "
        f"them (default: {DEFAULT_ACCELERATOR})",
    )
    group.add_argument(
        "--config",
        metavar="FILE",
        action="append",
        help="for Ethos-U: vela.ini with system configurations and memory modes, your own or a "
        "bundled one; of several files the later override the earlier (default: Arm/vela.ini)",
    )
    group.add_argument(
        "--system-config",
        metavar="NAME",
        help="for Ethos-U: section of vela.ini with the clock and the memories' speeds (default: "
        "by accelerator)",
    )
    group.add_argument(
        "--memory-mode",
        metavar="NAME",
        action=action,
        help="for Ethos-U: section of vela.ini that assigns constants and arena to memories "
        "(default: by accelerator)",
    )


def _add_cache_option(group: Options) -> None:
    group.add_argument(
        "--arena-cache-size",
        metavar="BYTES",
        type=size_in_bytes,
        help="SRAM that the compiler may use, as 384K for KiB (default: by memory mode or, for "
        "Ethos-N, by variant)",
    )


def _add_generator_options(parser: argparse.ArgumentParser) -> None:
    """Add those that say whose code it is to be."""
    group = parser.add_argument_group("code")
    group.add_argument(
        "--generator",
        metavar="{own,vela,best}",
        help="for Ethos-U: who writes the code: own is Mizzen; vela is Arm's compiler, for TFLite "
        "and TOSA; best compiles with both and keeps the better (default: own)",
    )
    group.add_argument(
        "--search",
        metavar="{fast,thorough}",
        help="how long Mizzen searches for a schedule (default: fast)",
    )


def keywords(options: argparse.Namespace) -> Keywords:
    """Return the keywords of a compilation, of the options."""
    return Keywords(
        accelerator=options.accelerator_config,
        board=vars(options).get("board"),
        clock_hz=vars(options).get("clock"),
        config=tuple(options.config) if options.config else None,
        system_config=options.system_config,
        memory_mode=options.memory_mode,
        optimise=options.optimise,
        arena_cache_size=options.arena_cache_size,
        ignore_ops=options.ignore_ops,
        target_options={**_generation(options), **dict(options.target_option)},
        prove=options.prove,
        allow_inexact=options.allow_inexact,
        shapes=read_shapes(options.shape),
    )


def _generation(options: argparse.Namespace) -> dict[str, str]:
    """Return the options about whose code it is to be, which only one family asks."""
    named = {"generator": options.generator, "search": options.search}
    return {name: value for name, value in named.items() if value is not None}


class GivenOnce(argparse.Action):
    """Takes one value, and refuses another: it would be as if the first had not been given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Keep the value. E200 for a second."""
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "may be given once")
        setattr(namespace, self.dest, values)


def add_budget_options(parser: argparse.ArgumentParser, cpu_ops: str = "any number") -> None:
    """Add the options that make a wish a condition, which the exit status then tells.

    cpu_ops  how many operators may be on the CPU by default, in words
    """
    group = parser.add_argument_group("conditions (exit status 1 when they do not hold)")
    group.add_argument(
        "--sram-budget",
        metavar="BYTES",
        type=size_in_bytes,
        help="most SRAM that the network may need at its peak, as 384K for KiB",
    )
    group.add_argument(
        "--max-cpu-ops",
        metavar="N",
        type=whole_number,
        help=f"operators that may be on the CPU (default: {cpu_ops})",
    )


def add_output_option(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option for the folder of written files."""
    parser.add_argument(
        "--output-dir",
        metavar="DIR",
        default="output",
        help=f"folder for {what} (default: %(default)s)",
    )


def output_folder(options: argparse.Namespace) -> Path:
    """Return the folder for written files, which are written with it. E201 for a file."""
    folder = Path(options.output_dir)
    if folder.exists() and not folder.is_dir():
        raise fail("E201", f"--output-dir must be a folder, and {folder} is a file")
    return folder


def show_configuration(asked: Keywords, model: str, console: Console) -> ResolvedTarget:
    """Return the configuration in force, and write it before anything is done with it.

    A model that is not there is said before: E110.
    """
    from mizzen.compiler.options import CompileOptions

    return show_options(CompileOptions(**asked), model, console)


def show_options(asked: CompileOptions, model: str, console: Console) -> ResolvedTarget:
    """Return the configuration in force of compile options, as `show_configuration` does."""
    from mizzen.cli.placement import configuration_text
    from mizzen.compiler.backend import resolve_target

    chosen = resolve_target(asked)
    if not Path(model).is_file():
        read_file(Path(model))
    console.note(configuration_text(chosen, width=console.width))
    return chosen


def whole_number(text: str) -> int:
    """Read the value of an option that counts."""
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"a whole number from 0 is needed, not {text!r}")
    return int(text)


def positive_number(text: str) -> int:
    """Read the value of an option that counts what there must be some of."""
    number = whole_number(text)
    if number == 0:
        raise argparse.ArgumentTypeError("a whole number from 1 is needed, not '0'")
    return number


def file_name(text: str) -> str:
    """Read the value of an option that names a file; an empty one would be as none."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a file is needed, and it is empty")
    return text


def size_in_bytes(text: str) -> int:
    """Read the value of an option that is a size in bytes."""
    try:
        return read_size(text)
    except ValueError:
        reason = f"a size is written like 393216, 384K or 2M, not like {text!r}"
        raise argparse.ArgumentTypeError(reason) from None


def name_and_value(text: str) -> tuple[str, str]:
    """Read the value of an option that sets another."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"NAME=VALUE is needed, not {text!r}")
    return name.strip(), value.strip()


def names_list(text: str) -> tuple[str, ...]:
    """Read names separated by commas, as Vela takes operator types."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
