"""What came of a compilation: its report, its costs, why each operator is where it is.

They are put together from the model, the artifact and what Vela said. Legality is asked here of the
rules' own facts, which are made of TFLite's operators and tensors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mizzen.artifact.ethos_u import npu_operator
from mizzen.artifact.execution import Contents
from mizzen.artifact.steps import is_npu
from mizzen.compiler.codegen import Costs
from mizzen.compiler.edges import edges_of_subgraph
from mizzen.compiler.ethos_u.legality import breaches_of, facts
from mizzen.compiler.report import CONTROL_FLOW, compile_report, ignored, tflite_placement
from mizzen.diagnostics import Diagnostic, Origin, Reason, Severity
from mizzen.flatbuffer.memory_plan import ALLOCATION
from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.subgraphs import CALLERS
from mizzen.frontends.tflite.variables import VARIABLE_KINDS
from mizzen.report import Area, CompileReport, Device, Measure, OperatorPlacement
from mizzen.report.proof import NOT_PROVED, Proof
from mizzen.targets.ethos_u.legal.tflite_defects import confused_biases, defects
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.generate import Compiled, Stopped

STOPS_COMPILER = "stops-the-compiler"
COMPILER = "compiler"
"""Rules that no table has: a defect, and the compiler's own words."""


KEPT = Reason(
    "variables",
    "the CPU keeps the network's variables, and the NPU takes and gives what they hold as tensors",
    help="nothing needs doing: the CPU only copies the state",
    source="Vela 5.2.0, which loses variables or reads them out of order",
)


@dataclass(frozen=True, slots=True)
class Generated:
    """Generated code, and the operators by index that were hidden for it.

    network   `compiled.network`, read, once it is known that it can be
    stopped   how the compiler stopped while they were not
    reasons   of those that were hidden because they would be computed wrongly
    wrong     what was said of operators that are on the NPU all the same
    contents  what the artifact holds, if it was executed already
    """

    compiled: Compiled
    hidden: frozenset[int]
    stopped: Stopped | None
    network: Model | None = None
    reasons: Mapping[int, Reason] = field(default_factory=dict[int, Reason])
    wrong: Mapping[int, Reason] = field(default_factory=dict[int, Reason])
    proof: Proof = NOT_PROVED
    contents: Contents | None = None


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
    generated: Generated,
    origins: Sequence[dict[int, Origin]] = (),
) -> CompileReport:
    """Return the report of a network's compilation; `network` is what came, read."""
    placements = tuple(_placements(model, network, configuration, generated))
    warnings = (
        *_hidden(model, generated),
        *_moved(model, generated),
        *_wrong(model, generated),
    )
    compiled, proof = generated.compiled, generated.proof
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
    model: Model, network: Model, configuration: EthosUConfiguration, generated: Generated
) -> Iterator[OperatorPlacement]:
    cycles: dict[int, int] = {}
    for work in generated.compiled.work:
        if work.operator is not None:
            cycles[work.operator] = cycles.get(work.operator, 0) + work.cycles
    on_cpu = _on_cpu(generated.compiled)
    edges = edges_of_subgraph(model.main)
    whole = all(is_npu(row) for row in network.main.operators)
    for operator in model.main.operators:
        # The compiler leaves out what nothing needs.
        kept = operator.kind in VARIABLE_KINDS and not whole
        stays = operator.index in on_cpu or kept
        reasons = _reasons(model, operator, configuration, generated) if stays else ()
        device = Device.CPU if stays else Device.NPU
        yield tflite_placement(model, operator, device, cycles, reasons, edges)


def _on_cpu(compiled: Compiled) -> set[int]:
    """Return the operators that the compiler left to the CPU."""
    return {work.operator for work in compiled.work if work.on_cpu and work.operator is not None}


def _reasons(
    model: Model, operator: Operator, configuration: EthosUConfiguration, generated: Generated
) -> Iterator[Reason]:
    """Tell why an operator is on the CPU: the rules it breaks, else what the compiler said."""
    if operator.kind in configuration.ignore_ops:
        yield ignored(operator.kind)
        return
    if operator.index in generated.reasons:
        yield generated.reasons[operator.index]
        return
    if operator.kind in CALLERS:
        yield CONTROL_FLOW
        return
    if operator.kind in VARIABLE_KINDS:
        yield KEPT
        return
    arch = configuration.accelerator.arch
    breaches = breaches_of(model, operator, arch)
    yield from breaches
    if breaches:
        return
    source = f"Vela {generated.compiled.version}"
    if operator.index in generated.hidden and generated.stopped is not None:
        yield Reason(
            STOPS_COMPILER,
            f"the compiler stops at this {operator.kind}: {generated.stopped.said}",
            help="replace the operator, or leave it on the CPU",
            source=source,
        )
        return
    yield _said(model, operator, generated.compiled, source)


def _said(model: Model, operator: Operator, compiled: Compiled, source: str) -> Reason:
    """Return the compiler's own words about an operator, if it has any."""
    outputs = model.main.present(operator.outputs)
    name = outputs[0].name if outputs else ""
    kind = operator.kind.replace("_", "")
    for refusal in compiled.refusals:
        if refusal.output == name and refusal.kind.replace("_", "") in (kind, "CUSTOM"):
            limit = re.sub(r"\s+", " ", refusal.constraint)
            return Reason(COMPILER, refusal.reason, limit=limit, source=source)
    return Reason(COMPILER, "the compiler leaves it there without a reason", source=source)


def _hidden(model: Model, generated: Generated) -> Iterator[Diagnostic]:
    """Warn of operators that had to be hidden from the compiler."""
    stopped = generated.stopped
    hidden = generated.hidden - set(generated.reasons)
    if stopped is None or not hidden:
        return
    operators = [model.main.operators[index] for index in sorted(hidden)]
    kinds = ", ".join(dict.fromkeys(operator.kind for operator in operators))
    kept = "1 operator is" if len(operators) == 1 else f"{len(operators)} operators are"
    yield Diagnostic(
        "W305",
        f"{kept} kept on the CPU ({kinds}), because the compiler stops otherwise: {stopped.said}",
        Severity.WARNING,
        model.origin(operators[0]),
        rule=f"Vela {generated.compiled.version}",
        help="nothing needs doing if the CPU has time for it",
    )


def _wrong(model: Model, generated: Generated) -> Iterator[Diagnostic]:
    """Warn of operators whose results a defect of the compiler makes wrong."""
    for index, reason in generated.wrong.items():
        yield _warning("W306", model, index, reason)


def _moved(model: Model, generated: Generated) -> Iterator[Diagnostic]:
    """Warn of operators that are on the CPU because the compiler would get them wrong.

    Those of one type that break one rule share a warning; the report has the numbers of each.
    """
    alike: dict[tuple[str, str], list[int]] = {}
    for index, reason in sorted(generated.reasons.items()):
        kind = model.main.operators[index].kind
        alike.setdefault((kind, reason.rule), []).append(index)
    for (kind, _), indices in alike.items():
        reason = generated.reasons[indices[0]]
        said = f"{kind} is on the CPU: {reason.message}"
        if len(indices) > 1:
            said = f"{len(indices)} {kind} are on the CPU, the first because {reason.message}"
        yield _warning("W307", model, indices[0], replace(reason, message=said))


def _warning(code: str, model: Model, index: int, reason: Reason) -> Diagnostic:
    origin = model.origin(model.main.operators[index])
    return Diagnostic(code, reason.message, Severity.WARNING, origin, reason.source, reason.help)


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
        estimate.cycles,
        estimate.npu_cycles,
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


def defects_of(model: Model, operator: Operator, arch: Arch) -> tuple[Reason, ...]:
    """Return the compiler's known defects that an operator of the main subgraph meets."""
    return tuple(defects(facts(model, operator, arch)))


def confused_of(
    model: Model, indices: Sequence[int], arch: Arch
) -> tuple[tuple[Operator, Reason], ...]:
    """Return those of some operators on the NPU whose biases the compiler confuses."""
    operators = [model.main.operators[index] for index in indices]
    found = confused_biases([facts(model, operator, arch) for operator in operators])
    return tuple((operators[index], breach) for index, breach in found)
