"""Compile an ONNX network: read it, place it, generate code, put the artifact together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mizzen.artifact.artifact import Artifact
from mizzen.compiler.assembly import assembled
from mizzen.compiler.backend import ResolvedTarget
from mizzen.compiler.onnx.host import OnnxLowering, is_edge
from mizzen.compiler.onnx.levels import few_levels
from mizzen.compiler.placement import Placement, place
from mizzen.compiler.report import with_diagnostics
from mizzen.compiler.source import Extents, Source
from mizzen.diagnostics import Diagnostic, Origin, ProgressCallback, Reason, Severity, fail
from mizzen.frontends.onnx.dialects import is_quantized, unquantized_because
from mizzen.frontends.onnx.lowering.lower import lower
from mizzen.frontends.onnx.lowering.notes import noted
from mizzen.frontends.onnx.model import Model
from mizzen.frontends.onnx.reading import read
from mizzen.graph import Operation
from mizzen.ops.control_flow import Custom
from mizzen.partition.placement import Legal


@dataclass(frozen=True, eq=False)
class Compiled:
    """A compiled network, and how its artifact and its graph belong together.

    tensors  of the artifact, by the values of the lowered graph
    """

    model: Model
    lowering: OnnxLowering
    placed: Placement
    artifact: Artifact
    tensors: Mapping[object, int]


def compile_onnx(
    source: Source, target: ResolvedTarget, on_progress: ProgressCallback | None = None
) -> Artifact:
    """Compile a file's network, which must be quantised.

    E107 for one that is not, E189 to E194 for one that cannot be read.
    """
    return compiled(source, target, on_progress).artifact


def compiled(
    source: Source, target: ResolvedTarget, on_progress: ProgressCallback | None = None
) -> Compiled:
    """Compile a file's network, and keep what it was made of."""
    model = read_quantized(source, target.shapes)
    compiler = target.backend.region_compiler(target.configuration, target.proof)
    lowering = OnnxLowering(lower(model, compiler.window_limits), source.stem, source.name)
    legal = legality(compiler.legality(lowering.graph), target.configuration.ignore_ops)
    placed = place(lowering.graph, legal, is_edge, compiler, target.proof, on_progress)
    artifact, tensors = assembled(lowering, placed, target)
    said = (*decisions_of(model), *few_levels(model))
    return Compiled(model, lowering, placed, with_diagnostics(artifact, said), tensors)


def read_quantized(source: Source, shapes: Extents) -> Model:
    """Read a network. E107 for one that is not quantised, E189 to E194 as `read`."""
    model = read(source.data, source.name, source.folder, shapes)
    if not is_quantized(model):
        raise fail(
            "E107",
            f"{source.name} must be quantised, and {unquantized_because(model)}",
            help=f"mizzen quantize {source.name} --data DATA -o {source.stem}_int8.onnx",
        )
    return model


def legality(of_target: Legal, kept: Sequence[str]) -> Legal:
    """Return a function that tells why an operation of a network may not be on an NPU.

    `of_target` has the target's rules; an operation without a form in integers has none.

    kept  types of operators that the user keeps on the CPU
    """

    def legal(operation: Operation) -> Sequence[Reason]:
        return form_of(operation) or _kept(operation, kept) or of_target(operation)

    return legal


def form_of(operation: Operation) -> Sequence[Reason]:
    """Return why an operation has no form in integers, whatever the NPU; nothing if it has one."""
    if not isinstance(operation, Custom) or is_edge(operation):
        return ()
    refusal = noted(operation)
    return (Reason("no-integer-form", refusal.reason, help=refusal.help or ""),)


def _kept(operation: Operation, kept: Sequence[str]) -> Sequence[Reason]:
    origin = operation.origin
    if origin is None or (origin.kind or "").upper() not in kept:
        return ()
    return (Reason("ignore-ops", f"{origin.kind} stays on the CPU, as asked for",
                   help="leave it out of --ignore-ops", source="--ignore-ops"),)  # fmt: skip


def decisions_of(model: Model) -> Iterator[Diagnostic]:
    """Return what reading decided for the user, as notes."""
    for said in model.said:
        yield Diagnostic("N189", said, Severity.NOTE, Origin(model=model.name))
