"""Compile a TFLite network by regions: lower it, place it, compile, leave the rest to the CPU.

This is the way of families whose compilers take regions of the tensor graph. The compiled regions
take the places of their operators in the user's own network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import read_network
from mizzen.compiler.codegen import OperatorCode, RegionCompiler
from mizzen.compiler.edges import Edges, edges_of_subgraph
from mizzen.compiler.options import Configuration
from mizzen.compiler.placement import Placement, place
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.report import (
    CONTROL_FLOW,
    NOTHING_COMPILED,
    compile_report,
    ignored,
    tflite_placement,
)
from mizzen.diagnostics import Device, ProgressCallback, Reason
from mizzen.frontends.tflite import Model, Operator
from mizzen.frontends.tflite.context import note_of
from mizzen.frontends.tflite.lower import Lowered
from mizzen.frontends.tflite.subgraphs import CALLERS
from mizzen.graph import Operation
from mizzen.ops.control_flow import Custom
from mizzen.package.tflite.replacement import Replacement, replace_operators
from mizzen.partition import Placed
from mizzen.partition.placement import Legal
from mizzen.passes import FOLD_CONSTANTS, Pipeline
from mizzen.report import OperatorPlacement
from mizzen.targets.families import Family

EDGES = ("tflite.QUANTIZE", "tflite.DEQUANTIZE")

FOLD = Pipeline((FOLD_CONSTANTS,))
"""Brings constants that the network computes into the form of constants."""

OperatorRule = Callable[[Operator], Sequence[Reason]]
"""Why an operator of the network may not be on the NPU, besides what its operations say."""

UNUSED = Reason(
    "folded",
    "it computes of constants alone, or nothing at all",
    help="nothing needs doing",
)


def no_rule(operator: Operator) -> Sequence[Reason]:
    """Judge an operator by its operations alone."""
    return ()


def compile_lowered(
    model: Model,
    lowered: Lowered,
    compiler: RegionCompiler,
    configuration: Configuration,
    proof: ProofOptions,
    family: Family,
    artifact_name: str,
    on_progress: ProgressCallback | None,
    rule: OperatorRule = no_rule,
) -> Artifact:
    """Compile a network that was read from a file and lowered.

    compiler  gives `OperatorCode`; `family` is the one whose operators it makes
    """
    FOLD.run(lowered.graph)
    ignore_ops = configuration.ignore_ops
    legal = _legality(lowered, compiler.legality(lowered.graph), ignore_ops, rule, family)
    placed = place(lowered.graph, legal, _is_edge, compiler, proof, on_progress)
    codes = _codes(placed)
    data = replace_operators(
        model.record,
        [_replacement(lowered, groups, code, family.code) for groups, code in codes.items()],
    ).data
    origins = [dict(code.origins) for code in codes.values()]
    edges = edges_of_subgraph(model.main)
    report = compile_report(
        model.name,
        configuration,
        (
            _placement(model, row, placed.partition.groups.get(row.index), edges)
            for row in model.main.operators
        ),
        [code.costs for code in codes.values()],
        compiler=next((code.compiler for code in codes.values()), NOTHING_COMPILED),
        flash_bytes=len(data),
        origins=origins,
        proof=placed.proof,
    )
    network = read_network(data, artifact_name)
    programs = [code.program for code in codes.values()]
    return Artifact(data, artifact_name, contents_of(network, origins, programs), report)


def _is_edge(operation: Operation) -> bool:
    """Whether an operation only makes integers of real numbers, or the other way round."""
    return isinstance(operation, Custom) and operation.operator_name in EDGES


def _legality(
    lowered: Lowered,
    of_target: Legal,
    ignore_ops: Sequence[str],
    rule: OperatorRule,
    family: Family,
) -> Legal:
    not_on_npu = f"leave it to the CPU; `mizzen targets` lists the operations of {family.name}"

    def legal(operation: Operation) -> Sequence[Reason]:
        operator = lowered.operator_of(operation)
        if operator is not None and operator.kind in ignore_ops:
            return (ignored(operator.kind),)
        if operator is not None and operator.kind in CALLERS:
            return (CONTROL_FLOW,)
        if isinstance(operation, Custom):
            note = note_of(operation)
            return (Reason("no-integer-form", note.reason, help=note.help or not_on_npu),)
        reasons = rule(operator) if operator is not None else ()
        return reasons or of_target(operation)

    return legal


def _codes(placed: Placement) -> dict[tuple[int, ...], OperatorCode]:
    """Return the code of the regions on the NPU, in the order of execution."""
    found: dict[tuple[int, ...], OperatorCode] = {}
    for region in placed.partition.regions:
        if region.device is Device.NPU:
            code = placed.code[region.groups]
            assert isinstance(code, OperatorCode), "its code can stand in a network"
            found[region.groups] = code
    return found


def _replacement(
    lowered: Lowered, groups: tuple[int, ...], code: OperatorCode, name: str
) -> Replacement:
    inputs = [lowered.tensor_of[value] for value in code.part.inputs]
    outputs = [lowered.tensor_of[value] for value in code.part.outputs]
    return Replacement(
        operators=groups,
        code=name,
        constants=code.constants,
        inputs=tuple(inputs[index] for index in code.given),
        outputs=tuple(outputs[index] for index in code.computed),
    )


def _placement(
    model: Model,
    operator: Operator,
    placed: Placed | None,
    edges: Edges,
) -> OperatorPlacement:
    reasons = (UNUSED,) if placed is None else placed.reasons
    on_npu = placed is not None and placed.device is Device.NPU
    device = Device.NPU if on_npu else Device.CPU
    return tflite_placement(model, operator, device, () if on_npu else reasons, edges)
