"""What came of a compilation by Vela: its report, its costs, why each operator is where it is.

They are put together from the model, the artifact and what Vela said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from mizzen.artifact.ethos_u import npu_operator
from mizzen.artifact.steps import is_npu
from mizzen.compiler.codegen import Costs
from mizzen.compiler.edges import edges_of_subgraph
from mizzen.compiler.report import compile_report, ignored, tflite_placement
from mizzen.diagnostics import Diagnostic, Origin, Reason
from mizzen.flatbuffer.memory_plan import ALLOCATION
from mizzen.frontends.tflite import Model, Operator
from mizzen.report import Area, CompileReport, Device, Measure, OperatorPlacement
from mizzen.report.proof import NOT_PROVED, Proof
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.generate import Compiled

RULE = "compiler"
"""The rule that an operator breaks which Vela leaves to the CPU in its own words."""


def origins_of(model: Model, compiled: Compiled) -> list[dict[int, Origin]]:
    """Return, for each NPU operator in order, byte offset of a command to the model's operator."""
    streams: list[dict[int, Origin]] = []
    operators = model.main.operators
    for command in compiled.commands:
        while len(streams) <= command.stream:
            streams.append({})
        if command.operator is not None and 0 <= command.operator < len(operators):
            origin = model.origin(operators[command.operator])
            streams[command.stream][command.offset_bytes] = origin
    return streams


def report_of(
    model: Model,
    network: Model,
    configuration: EthosUConfiguration,
    compiled: Compiled,
    origins: Sequence[dict[int, Origin]] = (),
    proof: Proof = NOT_PROVED,
    warnings: Sequence[Diagnostic] = (),
) -> CompileReport:
    """Return the report of a network's compilation; `network` is what came, read."""
    placements = tuple(_placements(model, configuration, compiled))
    return network_report(
        placements, model.name, configuration, compiled, network, origins, proof, warnings
    )


def network_report(
    placements: Iterable[OperatorPlacement],
    name: str,
    configuration: EthosUConfiguration,
    compiled: Compiled,
    network: Model,
    origins: Sequence[dict[int, Origin]] = (),
    proof: Proof = NOT_PROVED,
    warnings: Sequence[Diagnostic] = (),
) -> CompileReport:
    """Return the report of a compiled network, or of what of a network was compiled."""
    return compile_report(
        name,
        configuration,
        placements,
        [costs_of(compiled, network, configuration)],
        compiler=made_by(compiled),
        flash_bytes=len(compiled.network),
        arena_bytes=arena_bytes(network),
        origins=origins,
        warnings=warnings,
        log=compiled.log,
        proof=proof,
    )


def _placements(
    model: Model, configuration: EthosUConfiguration, compiled: Compiled
) -> Iterator[OperatorPlacement]:
    on_cpu = {work.operator for work in compiled.work if work.on_cpu}
    edges = edges_of_subgraph(model.main)
    for operator in model.main.operators:
        stays = operator.index in on_cpu
        reasons = (_reason(model, operator, configuration, compiled),) if stays else ()
        device = Device.CPU if stays else Device.NPU
        yield tflite_placement(model, operator, device, reasons, edges)


def _reason(
    model: Model, operator: Operator, configuration: EthosUConfiguration, compiled: Compiled
) -> Reason:
    if operator.kind in configuration.ignore_ops:
        return ignored(operator.kind)
    return _said(model, operator, compiled, f"Vela {compiled.version}")


def _said(model: Model, operator: Operator, compiled: Compiled, source: str) -> Reason:
    """Return the compiler's own words about an operator, if it has any."""
    outputs = model.main.present(operator.outputs)
    name = outputs[0].name if outputs else ""
    kind = operator.kind.replace("_", "")
    for refusal in compiled.refusals:
        if refusal.output == name and refusal.kind.replace("_", "") in (kind, "CUSTOM"):
            limit = re.sub(r"\s+", " ", refusal.constraint)
            return Reason(RULE, refusal.reason, limit=limit, source=source)
    return Reason(RULE, "the compiler leaves it there without a reason", source=source)


_ON_CHIP = {"shram", "lutram"}
"""Memories inside the NPU, which the compiler lists with the system's."""


def made_by(compiled: Compiled) -> str:
    """Say who compiled a network."""
    return f"Vela {compiled.version}"


def costs_of(compiled: Compiled, network: Model, configuration: EthosUConfiguration) -> Costs:
    """Return the costs of a compiled network, which is `compiled.network`, read."""
    estimate = compiled.estimate
    measures = (
        Measure(row.name, row.peak_bytes, row.access_cycles, row.accesses)
        for row in estimate.memories
        if row.name not in _ON_CHIP
    )
    return Costs(
        tuple(_areas(network, configuration)),
        tuple(measures),
        estimate.figures,
    )


def arena_bytes(network: Model) -> int:
    """Return the size of the runtime's tensor arena."""
    return max(_ends(network).values(), default=0)


def _areas(network: Model, configuration: EthosUConfiguration) -> Iterator[Area]:
    """Measure what a network holds where: constants of NPU operators, feature maps, cache."""
    mode, main = configuration.mode, network.main
    parts = [npu_operator(network, row) for row in main.operators if is_npu(row)]
    constants = {part.read_only.tobytes() for part in parts}
    cache = max((part.scratch_fast_bytes or 0 for part in parts), default=0)
    of_cpu = [row for row in main.operators if not is_npu(row)]
    tensors = {index for row in of_cpu for index in (*row.inputs, *row.outputs)}
    ends = _ends(network)
    maps = [part.scratch_bytes for part in parts] + [ends[i] for i in tensors if i in ends]
    yield Area("constants", configuration.memory(mode.constants).value, sum(map(len, constants)))
    yield Area("arena", configuration.memory(mode.arena).value, max(maps, default=0))
    if mode.spills:
        yield Area("cache", configuration.memory(mode.cache).value, cache)


def _ends(network: Model) -> dict[int, int]:
    """Return the end of each tensor that the compiler placed in the runtime's arena, by index."""
    contents = network.metadata.get(ALLOCATION)
    if contents is None:
        return {}
    offsets = contents[: contents.nbytes // 4 * 4].view("<i4").tolist()[3:]
    return {
        tensor.index: offset + (tensor.size_bytes or 0)
        for offset, tensor in zip(offsets, network.main.tensors, strict=False)
        if offset >= 0
    }
