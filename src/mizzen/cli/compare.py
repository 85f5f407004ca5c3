"""Three comparisons under one verb.

mizzen compare MODEL
    exactness: each layer of the compiled network beside the integer reference
mizzen compare MODEL --float FLOAT
    quantisation: each layer of the integer reference beside floating point
mizzen compare MODEL MODEL...    or    mizzen compare MODEL --baseline FILE
    cost: cycles and memory of versions, accelerators or memory modes
mizzen compare MODEL --artifact ARTIFACT --costs
    cost: Mizzen's code of MODEL beside another compiler's, layer by layer
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mizzen.cli.clock import timed_on
from mizzen.cli.comparison import (
    beside_text,
    comparison_text,
    growth_text,
    precision_text,
    versions_text,
)
from mizzen.cli.configuration import (
    Keywords,
    add_configuration_options,
    board_of,
    file_name,
    keywords,
    positive_number,
    require_on_board,
    show_configuration,
    whole_number,
)
from mizzen.cli.console import Answer, Console
from mizzen.cli.inputs import read_inputs
from mizzen.diagnostics import Diagnostic, MizzenError, Severity, fail
from mizzen.escaping import one_line

if TYPE_CHECKING:
    from mizzen.analysis.comparison.exactness import SideBySide
    from mizzen.artifact.interface import Array, TensorInfo
    from mizzen.report.versions import Version, VersionGrowth

SUMMARY = "layers beside the reference or beside float; versions by cost"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        nargs="+",
        help="a quantised .tflite, .onnx or .pt2 file, or a .tosa file; for cost, an artifact too",
    )
    _add_exactness_options(parser)
    _add_float_options(parser)
    _add_cost_options(parser)
    add_configuration_options(parser, "append")


def _add_exactness_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("layer by layer (exit status 1 if an integer differs)")
    group.add_argument(
        "--artifact",
        metavar="ARTIFACT",
        help="an artifact that any compiler made of MODEL; without it MODEL is compiled",
    )
    group.add_argument(
        "--input",
        metavar="[NAME=]FILE",
        nargs="+",
        help="the inputs to compare on, as for `mizzen run` (default: generated)",
    )
    group.add_argument(
        "--inputs",
        metavar="N",
        type=positive_number,
        help="number of generated inputs (default: 2 to 16, more for small networks)",
    )
    group.add_argument(
        "--seed", metavar="S", type=whole_number, help="seed of generated inputs (default: 1)"
    )
    group.add_argument(
        "--run",
        metavar="N",
        type=positive_number,
        help="consecutive inferences from the initial state (default: 4 for a network with state, "
        "else 1)",
    )


def _add_float_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("beside the floating-point network")
    group.add_argument(
        "--float",
        metavar="NET",
        dest="floating",
        help="the .tflite, .onnx or .pt2 that MODEL was quantised from; lists noise, errors and "
        "saturation of each layer, the worst first",
    )
    group.add_argument(
        "--data",
        metavar="[NAME=]PATH",
        nargs="+",
        help="real inputs: a .npz, .npy or a folder of files, as for `mizzen evaluate`",
    )
    group.add_argument(
        "--min-sqnr",
        metavar="DB",
        type=float,
        help="exit status 1 if a layer has a lower signal-to-quantisation-noise ratio",
    )


def _add_cost_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("by cost (exit status 1 if something grew too much)")
    group.add_argument(
        "--costs",
        action="store_true",
        help="compare by cost; implied by several MODELs, accelerators or memory modes, and by the"
        " options below; with --artifact, Mizzen's code of MODEL beside it, layer by layer",
    )
    group.add_argument(
        "--baseline",
        metavar="FILE",
        type=file_name,
        help="exit status 1 if cycles, SRAM, flash, the file or the operators on the CPU grew "
        "since FILE was written",
    )
    group.add_argument(
        "--allow-growth",
        metavar="MEASURE=AMOUNT[,...]",
        help="growth to allow: cycles=2%%,sram=0,flash=1K,file=1K,cpu-operators=0 (default: none)",
    )
    group.add_argument(
        "--write-baseline",
        metavar="FILE",
        type=file_name,
        help="write the file that --baseline reads; not if the comparison with --baseline fails",
    )
    group.add_argument(
        "--markdown",
        metavar="FILE",
        type=file_name,
        help="write a table for a pull request; - is stdout, instead of the answer",
    )


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Compare by cost where that is asked for, else with the reference."""
    configurations = _configurations(options)
    several = len(options.model) > 1 or len(configurations) > 1
    files = options.baseline or options.write_baseline or options.markdown
    if options.allow_growth is not None and options.baseline is None:
        raise fail(
            "E200",
            "the command line is wrong: --allow-growth needs --baseline FILE, which says since "
            "when something may have grown",
            help="write the file once: mizzen compare MODEL --write-baseline FILE",
        )
    if options.floating is not None:
        return _precision(options, console)
    if not (several or options.costs or files):
        return _exactness(options, configurations[0], console)
    if options.artifact is not None and not (several or files):
        return _beside(options, configurations[0], console)
    given = ("artifact", "input", "inputs", "seed", "run", "data", "min_sqnr")
    _refuse_exactness_options(options, given)
    return _costs(options, configurations, console)


def _configurations(options: argparse.Namespace) -> list[Keywords]:
    """Return every pair of an accelerator and a memory mode, as keywords of compilations."""
    asked: list[Keywords] = []
    for accelerator, mode in itertools.product(
        options.accelerator_config or [None], options.memory_mode or [None]
    ):
        one = {**vars(options), "accelerator_config": accelerator, "memory_mode": mode}
        asked.append(keywords(argparse.Namespace(**one)))
    return asked


def _precision(options: argparse.Namespace, console: Console) -> Answer:
    """Hold the quantised network against its floating-point one."""
    from mizzen.analysis.comparison.precision import (
        Data,
        failures_of,
        measured,
        notes_of,
        two_networks,
    )
    from mizzen.report.precision import as_dict

    wrong = [f"--{name}" for name in ("artifact", "input", "run") if getattr(options, name)]
    if wrong or len(options.model) > 1:
        raise fail(
            "E200",
            "the command line is wrong: --float compares one MODEL with one network, on --data"
            + (f", and takes no {wrong[0]}" if wrong else ""),
            help="mizzen compare --help",
        )
    (model,) = options.model
    with console.progress(f"comparing {model} with {options.floating}"):
        networks, names = two_networks(model, options.floating)
        arrays = _data(options, networks.inputs, console)
        data = Data(arrays, options.inputs, _seed(options))
        precision = measured(networks, *names, data)
    return Answer(
        as_dict(precision),
        precision_text(precision, width=console.table_width),
        failures=tuple(failures_of(precision, options.min_sqnr)),
        diagnostics=tuple(notes_of(precision)),
    )


def _seed(options: argparse.Namespace) -> int:
    from mizzen.analysis.comparison.exactness import SEED

    return SEED if options.seed is None else options.seed


def _data(
    options: argparse.Namespace, infos: Sequence[TensorInfo], console: Console
) -> list[Array] | None:
    """Return the first of the user's inputs, as many as are asked for, or all."""
    if not options.data:
        return None
    import numpy as np

    from mizzen.data.opening import open_data

    opened = open_data(options.data, infos)
    for line in opened.notes:
        console.note(line)
    chosen = opened.data.cut(0, options.inputs or opened.data.size)
    return [np.concatenate(column.read()) for column in chosen.columns]


def _exactness(options: argparse.Namespace, asked: Keywords, console: Console) -> Answer:
    """Compile, execute, and say of each layer whether it is what the reference computes."""
    from mizzen.analysis.comparison.exactness import (
        Inputs,
        failures_of,
        notes_of,
        run_all,
        sides,
    )
    from mizzen.artifact.loading import load
    from mizzen.artifact.verifying import not_as_written
    from mizzen.report.comparison import as_dict

    (model,) = options.model
    _refuse_float_options(options)
    artifact = None if options.artifact is None else load(options.artifact, asked["accelerator"])
    if artifact is not None:
        require_on_board(options, artifact)
    doubts = () if artifact is None else tuple(not_as_written(artifact))
    if artifact is not None and asked["accelerator"] is None:
        asked["accelerator"] = artifact.accelerator
    target = show_configuration(asked, model, console)
    try:
        with console.progress(f"compiling {model}") as change:
            compared = sides(model, target, artifact)
            change(f"comparing {model}")
            arrays = _arrays(options, compared[0], console)
            inputs = Inputs(arrays, options.inputs, _seed(options), options.run)
            comparison = run_all(compared, target, inputs)
    except MizzenError as error:
        if not doubts:
            raise
        return Answer({"artifact": options.artifact}, "", failures=(*doubts, error.diagnostic))
    return Answer(
        {"artifact": compared[0].artifact.name, **as_dict(comparison)},
        comparison_text(comparison, width=console.table_width),
        failures=(*doubts, *failures_of(comparison)),
        diagnostics=(
            *(diagnostic for side in compared for diagnostic in _diagnostics(side)),
            *notes_of(comparison),
        ),
    )


def _refuse_float_options(options: argparse.Namespace) -> None:
    for name in ("data", "min_sqnr"):
        if getattr(options, name) is not None:
            raise fail(
                "E200",
                f"the command line is wrong: --{name.replace('_', '-')} needs --float NET",
                help="give the inputs with --input" if name == "data" else "mizzen compare --help",
            )


def _arrays(
    options: argparse.Namespace, compared: SideBySide, console: Console
) -> list[Array] | None:
    if not options.input:
        return None
    return read_inputs(options.input, compared.artifact.inputs, console.note)


def _diagnostics(compared: SideBySide) -> Iterator[Diagnostic]:
    report = compared.artifact.report
    if report is not None:
        yield from report.diagnostics
    yield from compared.artifact.notes


def _beside(options: argparse.Namespace, asked: Keywords, console: Console) -> Answer:
    """Say what MODEL costs by Mizzen's code beside an artifact of it, in the same system."""
    from mizzen.analysis.comparison.beside import beside
    from mizzen.artifact.loading import load
    from mizzen.report.versions import versions_as_dict

    _refuse_exactness_options(options, ("input", "inputs", "seed", "run", "data", "min_sqnr"))
    (model,) = options.model
    artifact = load(options.artifact, asked["accelerator"])
    require_on_board(options, artifact)
    asked["accelerator"] = artifact.accelerator
    target = show_configuration(asked, model, console)
    with console.progress(f"compiling {model} for {target.accelerator}"):
        found = beside(model, artifact, target)
    return Answer(
        {**versions_as_dict([found.theirs, found.ours]), **found.as_dict()},
        beside_text(found, width=console.table_width),
        diagnostics=tuple(artifact.doubts),
    )


def _refuse_exactness_options(options: argparse.Namespace, names: Sequence[str]) -> None:
    wrong = [f"--{name.replace('_', '-')}" for name in names if getattr(options, name) is not None]
    if wrong:
        raise fail(
            "E200",
            f"the command line is wrong: {', '.join(wrong)} is for one MODEL beside its reference, "
            "and this compares by cost",
            help="mizzen compare --help",
        )


def _costs(options: argparse.Namespace, configurations: list[Keywords], console: Console) -> Answer:
    """Say what each version costs, and what has grown since the baseline."""
    from mizzen.analysis.comparison.growth import (
        allowances_of,
        failures_of,
        not_written,
        notes_of,
        refuse_doubles,
        unmatched,
    )
    from mizzen.files import write_files
    from mizzen.report.markdown import markdown
    from mizzen.report.versions import growths, read_versions, versions_as_dict

    allowances = allowances_of(options.allow_growth or "")
    baseline = () if options.baseline is None else read_versions(Path(options.baseline))
    told: list[Diagnostic] = []
    versions = list(_versions(options, configurations, console, told))
    if not versions:
        raise fail(
            "E200",
            f"the command line is wrong: nothing is left to compare: {told[0].message}",
            help="mizzen targets lists what goes with each accelerator",
        )
    if options.baseline is not None or options.write_baseline is not None:
        refuse_doubles(versions)
    changes = growths(versions, baseline, allowances)
    text = versions_text(versions, width=console.table_width)
    failures, notes = list(failures_of(changes)), list[Diagnostic]()
    if options.baseline is not None:
        text += "\n\n" + growth_text(changes, options.baseline, width=console.width)
        failures += unmatched(changes, baseline, options.baseline)
        notes += notes_of(changes, options.baseline)
    files = dict(_files(options, changes))
    if failures and options.baseline is not None and options.write_baseline is not None:
        del files[options.write_baseline]
        notes.append(not_written(options.write_baseline, options.baseline))
    write_files({Path(file): data for file, data in files.items()})
    if files:
        text += "\n\nWritten\n" + "\n".join(f"  {one_line(file)}" for file in files)
    return Answer(
        {**versions_as_dict(versions), "growth": _growth_data(changes)},
        markdown(changes).rstrip("\n") if options.markdown == STDOUT else text,
        failures=tuple(failures),
        diagnostics=(*told, *notes),
    )


def _files(
    options: argparse.Namespace, changes: Sequence[VersionGrowth]
) -> Iterator[tuple[str, bytes]]:
    """Return the files that are asked for, by their names."""
    from mizzen.report.markdown import markdown
    from mizzen.report.versions import versions_file

    if options.write_baseline is not None:
        yield options.write_baseline, versions_file([grown.version for grown in changes])
    if options.markdown not in (None, STDOUT):
        yield options.markdown, markdown(changes).encode()


def _versions(
    options: argparse.Namespace,
    configurations: list[Keywords],
    console: Console,
    told: list[Diagnostic],
) -> Iterator[Version]:
    """Return every version; `told` has pairs that there are not among others, and doubts."""
    from mizzen.analysis.comparison.versions import (
        identities,
        is_artifact,
        version_of,
        version_of_artifact,
    )
    from mizzen.artifact.loading import load

    names = identities(options.model)
    artifacts = {model for model in options.model if is_artifact(model)}
    of_all = _only(configurations) if artifacts == set(options.model) else None
    for model in options.model:
        if model in artifacts:
            artifact = load(model, of_all)
            require_on_board(options, artifact)
            told += artifact.doubts
            figures = timed_on(artifact, board_of(options), None)
            yield version_of_artifact(artifact, figures).named(names.get(model))
            continue
        for asked in configurations:
            try:
                target = show_configuration(asked, model, console)
            except MizzenError as error:
                if error.diagnostic.code not in NO_PAIR or len(configurations) == 1:
                    raise
                told.append(_skipped(asked, error))
                continue
            with console.progress(f"compiling {model} for {target.accelerator}"):
                yield version_of(model, target).named(names.get(model))


def _only(configurations: Sequence[Keywords]) -> str | None:
    """Return the accelerator that is asked for, where it is one."""
    asked = {one["accelerator"] for one in configurations}
    return asked.pop() if len(asked) == 1 else None


STDOUT = "-"
"""The file that is the answer itself."""

NO_PAIR = ("E218",)
"""What says that an accelerator and a memory mode do not go together."""


def _skipped(asked: Keywords, error: MizzenError) -> Diagnostic:
    return Diagnostic(
        "W494",
        f"{asked['accelerator']} with {asked['memory_mode']} is left out: "
        f"{error.diagnostic.message}",
        Severity.WARNING,
        rule=error.diagnostic.rule,
    )


def _growth_data(versions: tuple[VersionGrowth, ...]) -> list[dict[str, object]]:
    return [
        {
            "model": grown.version.model,
            "configuration": dict(grown.version.configuration),
            "measures": {
                growth.measure.value: {
                    "before": growth.before,
                    "now": growth.now,
                    "allowed": growth.allowed,
                    "allowance": str(growth.allowance),
                    "where": dict(growth.where),
                }
                for growth in grown.growths
            },
        }
        for grown in versions
        if grown.before is not None
    ]
