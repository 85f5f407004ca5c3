"""Write a project for a board: firmware that builds and runs the artifact."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.artifacts import add_data_option, load_artifact
from mizzen.cli.configuration import add_board_option, add_output_option, board_of, output_folder
from mizzen.cli.console import Answer, Console
from mizzen.cli.inputs import read_inputs
from mizzen.cli.layout import count, fields, size
from mizzen.diagnostics import did_you_mean, fail
from mizzen.escaping import one_line

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.boards import Board
    from mizzen.diagnostics import Diagnostic
    from mizzen.export import Project
    from mizzen.export.external import External

SUMMARY = "a project for a board's firmware that builds"
RUNTIMES = ("c", "tflm", "executorch", "tflite")
APART = ("constants", "model")
CHECKOUTS = {
    "tflm": "tflite-micro",
    "executorch": "executorch",
    "driver": "Arm's ethos-u-core-driver",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("artifact", metavar="ARTIFACT", help="a compiled .tflite, .zip or .pte")
    parser.add_argument(
        "--to",
        choices=RUNTIMES,
        type=_runtime,
        required=True,
        help="the runtime: c is Mizzen's own, in C99; tflm is TensorFlow Lite "
        "Micro, executorch is ExecuTorch; tflite is the file alone, for a system that loads it",
    )
    add_data_option(parser)
    parser.add_argument(
        "--signature", metavar="NAME", help="export a signature instead of the whole network"
    )
    add_board_option(
        parser,
        "the board: one that is built in, or a file .toml of your own; `mizzen targets` lists them",
        required=True,
    )
    parser.add_argument(
        "--memory-mode",
        metavar="NAME",
        help="the memory mode that the artifact was compiled for (default: from its report)",
    )
    parser.add_argument(
        "--input",
        metavar="[NAME=]FILE",
        nargs="+",
        default=(),
        help="an example, as for `mizzen run` (default: one inference of made numbers); the "
        "firmware executes it, and compares its outputs with those of the simulated NPU",
    )
    parser.add_argument(
        "--accelerator-config", metavar="NAME", help="fail if the artifact is for another NPU"
    )
    parser.add_argument(
        "--bare-metal",
        action="store_true",
        help="a firmware of its own, with start-up and linker script, where there would be sources "
        "for the vendor's SDK",
    )
    _add_external_options(parser)
    for name, title in CHECKOUTS.items():
        parser.add_argument(
            f"--{name}",
            metavar="DIR",
            help=f"your checkout of {title}, whose path the project then knows",
        )
    add_output_option(parser, "the project")


def _add_external_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--external",
        choices=APART,
        help="keep it in a file apart from the firmware, which can be exchanged: constants "
        "(weights, network_constants.bin) or the whole model (network_model.bin); --to c",
    )
    parser.add_argument(
        "--external-address",
        metavar="ADDRESS",
        type=_address,
        help="where that file lies on the device (default: the upper half of the memory of models)",
    )


def _address(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"an address is written like 0x71000000, not {text!r}"
        ) from None


def _external(options: argparse.Namespace) -> External | None:
    """Return what lies apart. E200 for a runtime that has no such file, and an address alone."""
    from mizzen.export.external import Apart, External

    if options.external is None and options.external_address is None:
        return None
    if options.external is None or options.to != "c":
        wrong = (
            "--external-address needs --external"
            if options.external is None
            else ("--external is for --to c")
        )
        raise fail(
            "E200",
            f"the command line is wrong: {wrong}",
            rule="docs/how-to/update-the-model.md",
            help="runtimes that open a file take it from wherever it lies; of an ExecuTorch "
            "program, artifact.save('net.pte', ptd='net.ptd') keeps the weights apart",
        )
    return External(Apart(options.external), options.external_address)


def _runtime(text: str) -> str:
    """Read the name of a runtime; case is no difference."""
    name = text.lower()
    if name in RUNTIMES:
        return name
    known = f"{', '.join(RUNTIMES[:-1])} or {RUNTIMES[-1]}"
    meant = IN_ZEPHYR if name == "zephyr" else did_you_mean(name, RUNTIMES)
    raise argparse.ArgumentTypeError(
        f"the runtime must be {known}, not {text!r}" + (f": {meant}" if meant else "")
    )


IN_ZEPHYR = "an application of Zephyr takes --to c, as docs/how-to/zephyr.md says"


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Export the artifact, and say what the project has and needs."""
    from mizzen.analysis.checking.artifacts import example_for
    from mizzen.export import RUNTIMES, Request, checkouts_for, with_page
    from mizzen.export.memory_mode import doubts
    from mizzen.package.firmware import write_project

    external = _external(options)
    given = {name: vars(options)[name] for name in CHECKOUTS if vars(options)[name] is not None}
    checkouts = checkouts_for(options.to, given)

    artifact = load_artifact(options, options.artifact)
    if options.signature is not None:
        artifact = artifact.signature(options.signature)
    board = board_of(options)
    assert board is not None, "a board is required"
    inputs = read_inputs(options.input, artifact.inputs, console.note) if options.input else ()
    made = () if options.input else example_for(artifact)
    with console.progress(f"exporting {options.artifact}"):
        request = Request(
            board, options.memory_mode, inputs, made, checkouts, options.bare_metal, external
        )
        runtime = RUNTIMES[options.to]
        project = with_page(runtime.project(artifact, request), board, artifact.accelerator)
    folder = output_folder(options)
    told = (
        *artifact.doubts,
        *_not_executed(artifact),
        *doubts(artifact, board, project.memory_mode, is_asked=options.memory_mode is not None),
        *_left_over(folder, project),
    )
    write_project(project.files, folder)
    alone = "model.mk" in project.files
    quoted = shlex.quote(str(folder))
    commands = runtime.commands(quoted, project.missing) if alone else ()
    document = {
        "artifact": str(options.artifact),
        "accelerator": artifact.accelerator,
        "board": board.name,
        "runtime": options.to,
        "memory_mode": project.memory_mode,
        "kernels": list(project.kernels),
        "bytes": {role.value: needed for role, needed in project.needed.items()},
        "inferences": project.inferences,
        "folder": str(folder),
        "files": sorted(project.files),
        "build": list(commands),
    }
    table = _table(project, board, artifact.accelerator, _example(project, options), console)
    text = "\n".join((one_line(str(folder)), table, "", *_next_lines(project, folder, commands)))
    return Answer(document, text, diagnostics=told)


SOURCES = frozenset({".c", ".cc", ".cpp", ".h", ".ld", ".mk", ".cmake"})
SHOWN_FILES = 4


def _left_over(folder: Path, project: Project) -> Iterator[Diagnostic]:
    """Warn of sources that lie among those of the project and are not of it: W327."""
    from mizzen.diagnostics import Diagnostic, Severity

    written = {folder / name for name in project.files}
    others = sorted(
        path.relative_to(folder).as_posix()
        for place in {path.parent for path in written}
        if place.is_dir()
        for path in place.iterdir()
        if path.suffix in SOURCES and path not in written
    )
    if others:
        more = len(others) - SHOWN_FILES
        names = ", ".join(others[:SHOWN_FILES]) + (f" and {more} more" if more > 0 else "")
        yield Diagnostic(
            "W327",
            f"{folder} holds sources that this export did not write, and a build may compile them: "
            f"{names}",
            Severity.WARNING,
            help="remove them, or give each board a folder of its own with --output-dir",
        )


def _not_executed(artifact: Artifact) -> Iterator[Diagnostic]:
    """Warn of signatures of other subgraphs than the one that firmware executes."""
    from mizzen.diagnostics import Diagnostic, Severity

    others = [signature.name for signature in artifact.contents.signatures if signature.subgraph]
    if others:
        yield Diagnostic(
            "W312",
            f"the firmware executes the main subgraph of {artifact.name}, and the model in it has "
            f"further signatures: {', '.join(others)}",
            Severity.WARNING,
            help="export a project of each with --signature NAME",
        )


def _next_lines(project: Project, folder: Path, commands: Sequence[str]) -> Iterator[str]:
    """Say what to do with the project."""
    from mizzen.export.onto_board import NAME

    if commands:
        yield "Build it"
        yield from (f"  {one_line(command)}" for command in commands)
    if NAME in project.files:
        yield "Read on"
        yield f"  {one_line(str(folder / NAME))}"


def _example(project: Project, options: argparse.Namespace) -> str:
    if not project.inferences:
        return "none"
    made = "" if options.input else " of made numbers; --input gives yours"
    return count(project.inferences, "inference") + made


def _table(
    project: Project, board: Board, accelerator: str | None, example: str, console: Console
) -> str:
    mode = board.mode(project.memory_mode)
    facts = [
        ("board", f"{board.title}, {project.memory_mode}"),
        ("accelerator", accelerator or "none"),
        *(
            (role.value, f"{size(needed)} in {board.memory(role, mode).name}")
            for role, needed in project.needed.items()
            if needed
        ),
        ("kernels", ", ".join(project.kernels) or "none"),
        ("example", example),
    ]
    return fields(facts, width=console.width)
