"""Report where each operator of a network runs, why, its cost, and the fit."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mizzen.cli.advice import tried_advice
from mizzen.cli.artifacts import add_data_option, is_size, load_artifact
from mizzen.cli.clock import add_clock_option
from mizzen.cli.configuration import (
    GivenOnce,
    add_budget_options,
    add_configuration_options,
    board_of,
    keywords,
    show_configuration,
    size_in_bytes,
)
from mizzen.cli.console import Answer, Console
from mizzen.cli.fit import Needs, needs_of_network, needs_text
from mizzen.cli.layers import cliff_text, layers_text
from mizzen.cli.layout import count, fields, size
from mizzen.cli.placement import cost_of, cpu_text, operators_text, summary_rows
from mizzen.diagnostics import Diagnostic, Severity, fail
from mizzen.escaping import one_line
from mizzen.report.layers import ORDERS, sorted_layers

if TYPE_CHECKING:
    from mizzen.analysis.checking.artifacts import ArtifactCheck
    from mizzen.analysis.checking.linux import LinuxCheck
    from mizzen.analysis.checking.networks import CheckReport
    from mizzen.artifact.artifact import Artifact
    from mizzen.compiler.backend import ResolvedTarget
    from mizzen.export import BoardFit
    from mizzen.report.advice import Advice
    from mizzen.report.cliffs import Cliff
    from mizzen.report.cost import CostReport
    from mizzen.report.layers import Layer
    from mizzen.report.memory import MemoryReport


RESULT = "output/NAME_vela.tflite"
FOR_MODELS = "of a MODEL 0, of an artifact any number"
"""How many operators may be on the CPU where nothing is said."""

OF_A_MODEL = (
    "sort", "cliffs", "clock", "config", "system_config", "memory_mode", "optimise",
    "arena_cache_size", "ignore_ops", "target_option", "shape", "prove", "allow_inexact",
    "generator", "search",
)  # fmt: skip
"""Options that say how to compile, or what to show of a compilation."""
SUMMARY = "where each operator runs, why, and what to change; fit on a board"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        nargs="?",
        help="a quantised .tflite, .onnx or .pt2 file, or a .tosa file",
    )
    add_data_option(parser)
    parser.add_argument(
        "--artifact",
        "--commands",
        metavar="ARTIFACT",
        action=GivenOnce,
        help="instead of a model: an artifact by any compiler, a .tflite, .zip, .pte or Vela's raw"
        " .npz; verified by its manifest, checked for hazards and damaged constants, and run on a"
        " few inputs",
    )
    parser.add_argument(
        "--linux",
        action="store_true",
        help="with --artifact: would Linux's driver take its streams? (Ethos-U65 and U85)",
    )
    parser.add_argument(
        "--linux-sram",
        metavar="BYTES",
        type=size_in_bytes,
        help="with --linux: size of the board's SRAM, which is region 2, as 384K for KiB",
    )
    add_clock_option(parser)
    parser.add_argument(
        "--sort",
        metavar="{cycles,macs,sram,utilisation}",
        choices=tuple(ORDERS),
        help="the column to sort the layers by (default: the model's order)",
    )
    parser.add_argument(
        "--cliffs",
        action="store_true",
        help="for .tflite: compile the slowest layers again, each alone, with a few channels more "
        "and fewer; report where the cost jumps",
    )
    add_configuration_options(parser)
    add_budget_options(parser, FOR_MODELS)


def execute(options: argparse.Namespace, console: Console) -> Answer:
    """Check the network, and say where each operator goes and what is not as allowed."""
    if (options.model is None) == (options.artifact is None):
        raise fail(
            "E200",
            "the command line is wrong: check takes either MODEL or --artifact ARTIFACT",
            help="mizzen check --help",
        )
    asks_linux = options.linux or options.linux_sram is not None
    if asks_linux and options.artifact is None:
        raise fail(
            "E200",
            "the command line is wrong: --linux asks about the stream of an --artifact, and none "
            "is given",
            help=f"compile it first, then: mizzen check --artifact {RESULT} --linux",
        )
    if options.artifact is None:
        return _model(options, console)
    _refuse_model_options(options)
    return _artifact(options, console)


def _refuse_model_options(options: argparse.Namespace) -> None:
    """Refuse what an artifact would ignore: E200. A board's memory mode is another's."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    on_board = {"memory_mode"} if board_of(options) is not None else set[str]()
    given = [
        f"--{name.replace('_', '-')}"
        for name in OF_A_MODEL
        if name not in on_board and getattr(options, name) != parser.get_default(name)
    ]
    if given:
        raise fail(
            "E200",
            f"the command line is wrong: {', '.join(given)} is for a MODEL, and --artifact is "
            "compiled already",
            help="give MODEL in place of --artifact, or leave it out",
        )


def _model(options: argparse.Namespace, console: Console) -> Answer:
    import mizzen
    from mizzen.analysis.checking.budget import again
    from mizzen.cli.compile import document

    asked = keywords(options)
    chosen = show_configuration(asked, options.model, console)
    with console.progress(f"compiling {options.model}"):
        checked = mizzen.check(
            options.model,
            max_cpu_ops=options.max_cpu_ops or 0,
            sram_budget=options.sram_budget,
            **asked,
        )
    report = checked.compilation
    cost = cost_of(checked.artifact)
    compile_again = again(options.model, **asked)
    needs = needs_of_network(checked.artifact, chosen.board, compile_again)
    layers = _layers(checked, cost, needs.memory, options.sort)
    made = checked.artifact, layers
    advice = tried_advice(options.model, made, asked, chosen, console)
    steps = _cliffs(options, chosen, layers, console) if options.cliffs else ()
    allowed = {
        "max_cpu_ops": checked.max_cpu_ops,
        "sram_budget_bytes": checked.sram_budget_bytes,
    }
    return Answer(
        {
            **allowed,
            **document(report, cost),
            **needs.as_dict(),
            "layers": [layer.as_dict() for layer in layers],
            "advice": [each.as_dict() for each in advice],
            **({"cliffs": [cliff.as_dict() for cliff in steps]} if options.cliffs else {}),
        },
        network_text(checked, cost, (layers, advice), steps, needs, console),
        failures=(*checked.failures, *needs.findings),
        diagnostics=report.diagnostics,
    )


def _layers(
    checked: CheckReport, cost: CostReport | None, memory: MemoryReport | None, order: str | None
) -> tuple[Layer, ...]:
    """Return the layers with what they cost.

    None of a `.tosa`, which nothing could run, nor for a family without a timing model.
    """
    from mizzen.analysis.layers import layers

    if cost is None or checked.artifact is None:
        return ()
    return tuple(sorted_layers(layers(checked.compilation, cost, memory), order))


def _cliffs(
    options: argparse.Namespace, chosen: ResolvedTarget, layers: Sequence[Layer], console: Console
) -> tuple[Cliff, ...]:
    """Compile neighbours of the layers that matter. E580 for what is not a TFLite network."""
    from mizzen.analysis.layers.cliffs import alone, candidates, cliffs
    from mizzen.analysis.layers.trials import network_of
    from mizzen.compiler.compile import source_of

    model = network_of(source_of(options.model))
    if model is None:
        raise fail(
            "E580",
            f"--cliffs must have a .tflite, whose layers can be compiled alone, and "
            f"{options.model} is not one",
            help="the advice below the table of layers holds for every network",
        )
    target = alone(chosen)
    if target.configuration != chosen.configuration:
        mode = target.configuration.as_dict()["memory_mode"]
        console.note(f"  layers alone are compiled with {mode}, which has their maps in SRAM")
    with console.progress("compiling neighbours") as shown:
        return tuple(
            cliffs(
                model,
                candidates(model, layers),
                target,
                lambda done, of: shown(f"compiling neighbours of layers, {done} of {of}"),
            )
        )


def _artifact(options: argparse.Namespace, console: Console) -> Answer:
    """Read the streams of an artifact. E206 if there are none, and no board is asked about."""
    from mizzen.analysis.checking.artifacts import check_artifact
    from mizzen.analysis.checking.limits import artifact_failures

    artifact = load_artifact(options, options.artifact)
    with console.progress(f"checking {options.artifact}"):
        checked = check_artifact(artifact)
    fit = _fit(options, artifact)
    linux = _linux(options, artifact)
    if not checked.steps and not checked.changed and fit is None:
        raise fail(
            "E206",
            f"{options.artifact} must have an NPU operator for its stream to be checked, and has "
            "none",
            help="compile it first, or ask where its operators go: "
            f"mizzen check {options.artifact}",
        )
    return Answer(
        {
            "artifact": str(options.artifact),
            "accelerator": artifact.accelerator,
            "manifest": None if artifact.manifest is None else artifact.manifest.as_dict(),
            **checked.as_dict(),
            **({} if fit is None else {"board": fit.as_dict()}),
            **({} if linux is None else {"linux": linux.as_dict()}),
        },
        _artifact_text(artifact, checked, fit, linux, console),
        failures=[
            *checked.findings,
            *artifact_failures(
                artifact,
                max_cpu_ops=options.max_cpu_ops,
                sram_budget_bytes=options.sram_budget,
            ),
            *(() if fit is None else fit.findings),
            *(() if linux is None else linux.findings),
        ],
        diagnostics=(
            *(artifact.doubts if not checked.changed else ()),
            *checked.doubts,
            *_sizes_alone(options, checked),
        ),
    )


def _sizes_alone(options: argparse.Namespace, checked: ArtifactCheck) -> Iterator[Diagnostic]:
    """Say that regions given by their size hold nothing, where something unwritten is read."""
    alone = [str(number) for number, value in options.region if is_size(value)]
    if alone and any(finding.code in HOLLOW for finding in checked.findings):
        yield Diagnostic(
            "W695",
            "what is read must have been written before, and what was given by its size holds "
            f"nothing: region {', '.join(alone)}",
            Severity.WARNING,
            rule="--region",
            help="where the network's input or its constants lie in it, give its contents: "
            "--region N=FILE",
        )


HOLLOW = ("E621", "E622", "E623", "E624", "E674")
"""Findings where memory holds nothing: weights that are none, a read of bytes never written."""


def _fit(options: argparse.Namespace, artifact: Artifact) -> BoardFit | None:
    board = board_of(options)
    if board is None:
        return None
    from mizzen.export import board_fit

    return board_fit(artifact, board, options.memory_mode)


def _linux(options: argparse.Namespace, artifact: Artifact) -> LinuxCheck | None:
    if not options.linux and options.linux_sram is None:
        return None
    from mizzen.analysis.checking.linux import linux_check

    return linux_check(artifact, options.linux_sram)


def _artifact_text(
    artifact: Artifact,
    checked: ArtifactCheck,
    fit: BoardFit | None,
    linux: LinuxCheck | None,
    console: Console,
) -> str:
    from mizzen.analysis.checking.artifacts import NOT_KNOWN

    facts = [
        ("accelerator", artifact.accelerator or "unknown"),
        ("manifest", _manifest(artifact, checked)),
    ]
    for step in checked.steps:
        if step.report is None:
            text = "malformed"
        else:
            hazards = count(len(step.findings), "hazard")
            text = f"{count(step.report.operations, 'operation')}, {hazards}"
        of = f"{step.subgraph}, " if step.subgraph else ""
        facts.append((f"{of}step {step.step}", text))
    if checked.inferences:
        ended = "executed" if checked.fault is None else "stopped by a fault"
        facts += [("run", f"{count(checked.inferences, 'inference')}, {ended}")]
    if checked.steps:
        facts += [("not checked", "; ".join(NOT_KNOWN))]
    if fit is not None:
        facts += [("board", f"{fit.board.title}, {fit.memory_mode}"), *_needs(fit)]
    if linux is not None:
        facts += _linux_facts(linux)
    return f"{one_line(artifact.name)}\n{fields(facts, width=console.width)}"


def _manifest(artifact: Artifact, checked: ArtifactCheck) -> str:
    """Say what the file says of itself, and whether it is true."""
    manifest = artifact.manifest
    if checked.changed:
        return "not of these bytes"
    if manifest is None:
        return "none, so that nothing shows a change of the file"
    return f"of all {count(manifest.bytes, 'byte')}, written by {manifest.facts.tool}"


def _linux_facts(linux: LinuxCheck) -> Iterator[tuple[str, str]]:
    """Say what Linux thinks of each step, and which buffers it wants."""
    for step, report in linux.reports:
        if report.refusals:
            broken = count(len(report.refusals), "rule")
            yield "Linux", f"would refuse step {step}: {broken} broken"
            continue
        sizes = report.region_bytes.items()
        buffers = ", ".join(f"region {region} of {size(end)}" for region, end in sizes)
        yield "Linux", f"would take step {step}, with {buffers}"


def _needs(fit: BoardFit) -> Iterator[tuple[str, str]]:
    if not fit.findings:
        mode = fit.board.mode(fit.memory_mode)
        for role, needed in fit.needed.items():
            memory = fit.board.memory(role, mode)
            if not needed:
                continue
            yield role.value, f"{size(needed)} of {size(memory.size_bytes)} in {memory.name}"


def network_text(
    checked: CheckReport,
    cost: CostReport | None,
    table: tuple[Sequence[Layer], Sequence[Advice]],
    steps: Sequence[Cliff],
    needs: Needs,
    console: Console,
) -> str:
    """Return what the verb prints of a network: its layers, what is on the CPU, whether it fits."""
    report, wide = checked.compilation, console.table_width
    layers, advice = table
    meaning = "" if cost is None else cost.meaning
    summary = fields(summary_rows(report, needs.memory), width=console.width)
    parts = [
        f"{one_line(report.model)}\n{summary}",
        layers_text(layers, advice, meaning, width=wide)
        if layers
        else operators_text(report, width=wide),
        *(cliff_text(cliff, width=console.width) for cliff in steps),
    ]
    if report.on_cpu:
        parts.append(cpu_text(report.on_cpu, width=console.width))
    if text := needs_text(needs, console):
        parts.append(text)
    return "\n\n".join(parts)
