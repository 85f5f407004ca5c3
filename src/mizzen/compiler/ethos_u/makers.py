"""Who compiles a network for an Ethos-U: our own rules, Arm's Vela, or the better of both.

Vela is started only where it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mizzen.diagnostics import MizzenError, ProgressCallback, fail
from mizzen.report.code import Maker, NetworkChoice, StreamCost
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration, Generator, Optimise

if TYPE_CHECKING:
    from mizzen.artifact.artifact import Artifact
    from mizzen.compiler.codegen import RegionCompiler
    from mizzen.compiler.proof.options import ProofOptions
    from mizzen.frontends.tflite import Model
    from mizzen.report import CompileReport
    from mizzen.report.board_figures import BoardFigures


def compile_tflite(
    model: Model,
    data: bytes,
    configuration: EthosUConfiguration,
    options: ProofOptions,
    on_progress: ProgressCallback | None,
) -> Artifact:
    """Compile a TFLite network that was read from the file `data`, rewritten if that is asked."""

    def compile_one(model: Model, data: bytes) -> Artifact:
        return _compiled(model, data, configuration, options, on_progress)

    if not configuration.rewrites:
        return compile_one(model, data)
    from mizzen.compiler.ethos_u.rewriting import compile_rewritten

    return compile_rewritten(model, data, configuration.rewrites, options, compile_one)


def _compiled(
    model: Model,
    data: bytes,
    configuration: EthosUConfiguration,
    options: ProofOptions,
    on_progress: ProgressCallback | None,
) -> Artifact:
    def own() -> Artifact:
        from mizzen.compiler.ethos_u.tflite import compile_network

        return compile_network(model, configuration, options, on_progress)

    def velas() -> Artifact:
        from mizzen.compiler.ethos_u.vela.tflite import compile_network

        return compile_network(model, data, configuration, options, on_progress)

    return _made(own, velas, configuration)


def compile_tosa(
    file: bytes,
    name: str,
    configuration: EthosUConfiguration,
    options: ProofOptions,
    on_progress: ProgressCallback | None,
) -> Artifact:
    """Compile a TOSA file."""

    def own() -> Artifact:
        from mizzen.compiler.ethos_u import tosa

        return tosa.compile_tosa(file, name, configuration, options, on_progress)

    def velas() -> Artifact:
        from mizzen.compiler.ethos_u.vela import tosa

        return tosa.compile_tosa(file, name, configuration, options, on_progress)

    return _made(own, velas, configuration)


def check_tosa(
    file: bytes,
    name: str,
    configuration: EthosUConfiguration,
    figures: BoardFigures | None,
    on_progress: ProgressCallback | None,
) -> CompileReport:
    """Place the operators of a TOSA file by our rules, whose code it gets."""
    from mizzen.compiler.ethos_u import tosa

    return tosa.check_tosa(file, name, configuration, figures, on_progress)


def _made(
    own: Callable[[], Artifact], velas: Callable[[], Artifact], configuration: EthosUConfiguration
) -> Artifact:
    match configuration.generator:
        case Generator.OWN:
            return own()
        case Generator.VELA:
            return velas()
        case Generator.BEST:
            return better(own, velas, configuration)


def region_compiler(configuration: EthosUConfiguration) -> RegionCompiler:
    """Return what compiles regions of tensor graphs by our rules. E308 if Vela is asked for."""
    if configuration.generator is Generator.VELA:
        raise fail(
            "E308",
            "Vela's code must be asked for of a TFLite or TOSA file, and this network is none",
            help="leave out `--generator vela`: Mizzen's own code needs no Vela",
        )
    from mizzen.compiler.ethos_u.regions import OwnRegions

    return OwnRegions(configuration)


def better(
    own: Callable[[], Artifact], velas: Callable[[], Artifact], configuration: EthosUConfiguration
) -> Artifact:
    """Compile a network in both ways, and return the better artifact, whose report says why.

    That is the one with more multiplications on the NPU; of equal ones the faster one by the timing
    model, or the one in less memory if that is asked for. Where one of them cannot compile it, the
    other one does.
    """
    try:
        theirs = velas()
    except MizzenError as error:
        if error.diagnostic.code == NOT_INSTALLED:
            raise
        return _chosen(own(), Maker.MIZZEN, f"Vela's has none: {error.diagnostic.message}")
    try:
        ours = own()
    except MizzenError as error:
        return _chosen(theirs, Maker.VELA, f"Mizzen's has none: {error.diagnostic.message}")
    costs = {
        Maker.MIZZEN: network_cost(ours, configuration),
        Maker.VELA: network_cost(theirs, configuration),
    }
    maker, reason = _better(ours, theirs, costs, configuration)
    taken = ours if maker is Maker.MIZZEN else theirs
    return _chosen(taken, maker, reason, costs[Maker.MIZZEN], costs[Maker.VELA])


NOT_INSTALLED = "E300"
"""The code of Vela's absence, which whoever asks for it must hear of."""


def _better(
    ours: Artifact,
    theirs: Artifact,
    costs: dict[Maker, StreamCost],
    configuration: EthosUConfiguration,
) -> tuple[Maker, str]:
    macs = {Maker.MIZZEN: _macs(ours), Maker.VELA: _macs(theirs)}
    if macs[Maker.MIZZEN] != macs[Maker.VELA]:
        maker = max(Maker, key=macs.__getitem__)
        return maker, f"{max(macs.values()):,} MACs on the NPU for {min(macs.values()):,}"

    def order(maker: Maker) -> tuple[int, int]:
        cost = costs[maker]
        if configuration.optimise is Optimise.SIZE:
            return cost.memory_bytes, cost.cycles
        return cost.cycles, cost.memory_bytes

    maker = min(Maker, key=order)
    what = "less memory" if configuration.optimise is Optimise.SIZE else "fewer cycles"
    return maker, what


def _macs(artifact: Artifact) -> int:
    return 0 if artifact.report is None else artifact.report.macs_on_npu


def network_cost(artifact: Artifact, configuration: EthosUConfiguration) -> StreamCost:
    """Return what the NPU operators of an artifact cost one after the other."""
    from mizzen.artifact.steps import NpuStep
    from mizzen.compiler.ethos_u.search.judging import cost_of
    from mizzen.targets.ethos_u.judge.timing import estimate

    programs = [step.program for step in artifact.steps if isinstance(step, NpuStep)]
    costs = [cost_of(program, estimate(program, configuration)) for program in programs]
    return StreamCost(
        cycles=sum(cost.cycles for cost in costs),
        vela_cycles=sum(cost.vela_cycles for cost in costs),
        arena_bytes=max((cost.arena_bytes for cost in costs), default=0),
        fast_bytes=max((cost.fast_bytes for cost in costs), default=0),
        constant_bytes=sum(cost.constant_bytes for cost in costs),
    )


def _chosen(
    artifact: Artifact,
    maker: Maker,
    reason: str,
    mizzen: StreamCost | None = None,
    vela: StreamCost | None = None,
) -> Artifact:
    if artifact.report is not None:
        choice = NetworkChoice(maker, reason, mizzen, vela)
        artifact.report = replace(artifact.report, choice=choice)
    return artifact
