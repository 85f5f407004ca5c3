"""Compile a TOSA network: all of it goes to the NPU, or an error says which operators cannot.

Whoever writes TOSA has decided what is for the NPU; there is no framework that could compute the
rest.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.reading import contents_of
from mizzen.artifact.steps import read_network
from mizzen.compiler.ethos_u.tosa import MOST_NAMED, index_of, placements_of, read_tosa
from mizzen.compiler.ethos_u.vela.outcome import network_report
from mizzen.compiler.ethos_u.vela.tosa_proof import prove_tosa
from mizzen.compiler.ethos_u.vela.tosa_refusals import find_refused
from mizzen.compiler.proof.options import ProofOptions
from mizzen.diagnostics import Diagnostic, MizzenError, Origin, ProgressCallback, fail
from mizzen.flatbuffer import read as read_file
from mizzen.flatbuffer import write as write_file
from mizzen.flatbuffer.tflite import SCHEMA as TFLITE
from mizzen.flatbuffer.tosa import ENDING
from mizzen.graph import Graph, Operation
from mizzen.ops.control_flow import Variable
from mizzen.package import tosa as package
from mizzen.report.proof import NOT_PROVED
from mizzen.targets.ethos_u.legal.tosa import WRONG, defects
from mizzen.targets.ethos_u.machine.commands import Arch
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration
from mizzen.targets.ethos_u.vela.defects import SUMS, avoid_defects
from mizzen.targets.ethos_u.vela.generate import Compiled, NetworkForm, Stopped, generate

OUTSIDE = "make the variable an input, and what is written to it an output"


def compile_tosa(
    file: bytes,
    name: str,
    configuration: EthosUConfiguration,
    proof: ProofOptions,
    on_progress: ProgressCallback | None = None,
) -> Artifact:
    """Compile a file's network by Vela, and prove what comes.

    Raises as `read_tosa`, E158 for variables, E3xx if the compiler does not take it, E306 and E307
    if it gets it wrong.
    """
    graph = require_no_state(read_tosa(file, name, configuration.ignore_ops))
    _require_right(graph, configuration.accelerator.arch)
    form = NetworkForm.TOSA
    compiled = generate(package.write(graph), configuration, form, on_progress=on_progress)
    if isinstance(compiled, Stopped):
        raise MizzenError(_failure(graph, configuration, compiled))
    data = _reshaped(graph, compiled.network, name)
    network, origins = read_network(data, name), _origins(graph, compiled)
    placements = placements_of(graph, _cycles(graph, compiled), {})
    contents, proved = contents_of(network, [origins]), NOT_PROVED
    if proof.inputs:
        before = read_tosa(file, name, ())
        proved = prove_tosa(before, contents, configuration, proof)
    report = network_report(placements, name, configuration, compiled, network, [origins], proved)
    return Artifact(data, _artifact_name(name), contents, report)


def _artifact_name(name: str) -> str:
    return f"{name.removesuffix(ENDING)}_vela.tflite"


def require_no_state(graph: Graph) -> Graph:
    """Return a graph without variables. E158 for one that has some."""
    if any(isinstance(operation, Variable) for operation in graph):
        raise MizzenError(_no_state(graph))
    return graph


def _no_state(graph: Graph) -> Diagnostic:
    """Refuse variables: Vela would keep them among the constants, which cannot be written."""
    variable = next(row for row in graph if isinstance(row, Variable))
    return Diagnostic(
        "E158",
        "state must come and go as inputs and outputs, and the network has the variable "
        f"{variable.name!r}",
        origin=variable.origin,
        help=f"{OUTSIDE}; Mizzen's own code for Ethos-U55 and U65 keeps variables: --generator own",
    )


def _require_right(graph: Graph, arch: Arch) -> None:
    """Change what the compiler would get wrong to what it gets right; E306 for what cannot be."""
    wrong = avoid_defects(graph, arch)
    if wrong:
        raise MizzenError(defect_of(wrong[0]))
    for operation in graph:
        for breach in defects(operation, arch):
            raise fail(
                "E306", breach.message, origin=operation.origin, rule=WRONG, help=breach.help
            )


def defect_of(operation: Operation) -> Diagnostic:
    """Make the error for an operation that the compiler would get wrong whatever is done."""
    if isinstance(operation, SUMS):
        rule = "operands must be scaled by one number, or by 2^15 or more before they are summed"
        advice = "scale the operands up further, and the sum down again"
    else:
        rule = "operators of the same weights and scales must have the same biases"
        advice = "add the bias in an operator of its own, or make the weights differ"
    return Diagnostic(
        "E306",
        f"{rule} for this compiler, and {operation.kind} has others",
        origin=operation.origin,
        rule=WRONG,
        help=advice,
    )


def _failure(graph: Graph, configuration: EthosUConfiguration, stopped: Stopped) -> Diagnostic:
    """Return the compiler's failure, at the operators that it is about where they can be found."""
    refused = find_refused(graph, package.write, configuration, stopped)
    if not refused:
        return stopped.diagnostic
    first = refused[0]
    named = ", ".join(str(index_of(row.operation)) for row in islice(refused, MOST_NAMED))
    more = " and more" if len(refused) > MOST_NAMED else ""
    others = f" (operators {named}{more})" if len(refused) > 1 else ""
    return Diagnostic(
        first.cause.value,
        f"{configuration.accelerator.name} must run every operator, and the compiler cannot place "
        f"{first.operation.kind}{others}: {first.said}",
        origin=first.operation.origin,
        help="lower it to other operators, choose another accelerator, or split the network there",
    )


def _reshaped(graph: Graph, network: bytes, name: str) -> bytes:
    """Set the shapes of inputs and outputs as they are in the graph.

    The compiler gives them those of the RESHAPE that they go into or come from; their bytes are
    the same. It has no rank 0.
    """
    record = read_file(network, TFLITE, name)
    (main,) = record["subgraphs"]
    changed = False
    for side, values in (("inputs", graph.inputs), ("outputs", graph.outputs)):
        for index, value in zip(main[side], values, strict=True):
            tensor = main["tensors"][index]
            if value.shape and tuple(tensor["shape"]) != value.shape:
                tensor["shape"] = np.asarray(value.shape, np.int32)
                changed = True
    return write_file(record, TFLITE) if changed else network


def _origins(graph: Graph, compiled: Compiled) -> dict[int, Origin]:
    """Return the operator of each command of the one NPU operator, by byte offset."""
    found: dict[int, Origin] = {}
    order = graph.sorted()
    for command in compiled.commands:
        origin = None if command.operator is None else order[command.operator].origin
        if origin is not None:
            found[command.offset_bytes] = origin
    return found


def _cycles(graph: Graph, compiled: Compiled) -> dict[int | None, int]:
    cycles: dict[int | None, int] = {}
    order = graph.sorted()
    for work in compiled.work:
        index = None if work.operator is None else index_of(order[work.operator])
        cycles[index] = cycles.get(index, 0) + work.cycles
    return cycles
