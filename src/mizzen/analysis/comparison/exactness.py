"""Compile a network, execute it, and judge it layer by layer: the whole of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from mizzen.analysis.comparison.constants import constants_beside
from mizzen.analysis.comparison.naming import with_origins
from mizzen.analysis.comparison.truth import is_numbered
from mizzen.artifact.artifact import Artifact
from mizzen.artifact.batching import batch_of
from mizzen.artifact.interface import Array
from mizzen.artifact.loading import load
from mizzen.artifact.program import OPERANDS
from mizzen.compiler.backend import ResolvedTarget, resolve_target
from mizzen.compiler.compile import (
    ONNX,
    PYTORCH,
    TFLITE,
    TOSA,
    compile_file,
    front_end_for,
    source_of,
)
from mizzen.compiler.options import CompileKeywords, SystemKeywords, options_of
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.source import Source
from mizzen.diagnostics import (
    Device,
    Diagnostic,
    MizzenError,
    ProgressCallback,
    Severity,
    fail,
)
from mizzen.report.comparison import (
    Comparison,
    ConstantDifference,
    ConstantsComparison,
    FirstDifference,
    LayerComparison,
    Outcome,
    OutputComparison,
)

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from mizzen.analysis.comparison.tflite import TfliteComparison
    from mizzen.frontends.tflite import Model

SEED = 1
"""Of inputs that are made: another than the proof's, whose inputs are seen already."""

RUN = 4
"""Inferences in a row for networks that keep state."""

AT_ONCE = 4
"""Inferences that are executed operation by operation at once."""

BUDGET_BYTES = 1 << 27
"""Of all tensors of the inferences that are compared at once."""


class SideBySide(Protocol):
    """An artifact and what it is compared with.

    name       of the model's file
    reference  what computes the other side
    constants  of an artifact that was there before, beside the model's
    """

    name: str
    artifact: Artifact
    reference: str
    constants: ConstantsComparison | None

    @property
    def keeps_state(self) -> bool:
        """Whether an inference may depend on those before it."""
        ...

    @property
    def values_bytes(self) -> int:
        """Bytes of all tensors of one inference."""
        ...

    def stimuli(self, count: int, seed: int) -> list[Array]:
        """Return inputs that tell, `[count, *shape]` each."""
        ...

    def add(self, inputs: Sequence[Sequence[Array]]) -> None:
        """Compare inferences in a row, each of a batch: for each its inputs, `[N, *shape]`."""
        ...

    def result(self) -> tuple[tuple[LayerComparison, ...], tuple[OutputComparison, ...]]:
        """Return the comparisons of layers, and of outputs."""
        ...

    def first_difference(self, inputs: Sequence[Array]) -> FirstDifference | None:
        """Return the first operation of a stream that is wrong; None where none is known to be.

        inputs  of single inferences, `[N, *shape]`
        """
        ...


@dataclass(frozen=True, slots=True)
class Inputs:
    """What to infer.

    arrays  the user's own, one for each input, with a leading axis of inferences; None for `count`
            inputs that are made from `seed`
    count   None for as many as a proof would take
    run     inferences in a row; None for one, or several where the network keeps state
    """

    arrays: Sequence[Array] | None = None
    count: int | None = None
    seed: int = SEED
    run: int | None = None


def compare(
    model: str | PathLike[str] | bytes,
    accelerator: str | None = None,
    *,
    artifact: Artifact | str | PathLike[str] | None = None,
    inputs: Inputs | None = None,
    on_progress: ProgressCallback | None = None,
    **options: Unpack[CompileKeywords],
) -> Comparison:
    """Compile a network, execute the artifact, and hold each layer against the reference.

    A `.tflite` is held against TensorFlow Lite Micro's kernels, a `.tosa` against TOSA's meaning, a
    `.pt2` against the converted PyTorch program, an `.onnx` against ONNX Runtime. The keywords are
    those of `mizzen.compile`.

    artifact  what was compiled before, by any compiler; None to compile `model` now

    Raises what `mizzen.compile` and `Artifact.run` do, E487 for an artifact of another network.
    """
    given = artifact
    if isinstance(given, (str, PathLike)):
        given = load(Path(given))
    if given is not None and accelerator is None:
        accelerator = given.accelerator
    target = resolve_target(options_of(accelerator, options, CompileKeywords, compare))
    compared = sides(model, target, given, on_progress)
    return run_all(compared, target, inputs or Inputs())


def compare_program(
    exported: ExportedProgram,
    accelerator: str | None = None,
    *,
    name: str = "model",
    inputs: Inputs | None = None,
    on_progress: ProgressCallback | None = None,
    **options: Unpack[SystemKeywords],
) -> Comparison:
    """Compile a converted PyTorch program, execute it, and hold each layer against PyTorch.

    The program is one that was exported after `convert_pt2e`; the keywords are those of
    `mizzen.torch.compile_converted`. Raises what that does.
    """
    from mizzen.analysis.comparison.program import beside

    target = resolve_target(options_of(accelerator, options, SystemKeywords, compare_program))
    return run(beside(exported, name, target, on_progress), target, inputs or Inputs())


def sides(
    model: str | PathLike[str] | bytes,
    target: ResolvedTarget,
    artifact: Artifact | None = None,
    on_progress: ProgressCallback | None = None,
) -> Sequence[SideBySide]:
    """Return a network's artifact beside its reference; compiled now if there is not one.

    Of a network of several subgraphs it is each, the main one first.
    """
    source = source_of(model)
    data, name = source.data, source.name
    front_end = front_end_for(source, target)
    if front_end is TFLITE:
        from mizzen.artifact.steps import read_network

        compiled = compile_file(source, target, on_progress)
        network = read_network(data, name)
        if artifact is not None and is_numbered(artifact):
            return [_stream(network, artifact, compiled)]
        return list(_subgraphs(network, target, compiled, artifact))
    if front_end is TOSA:
        return [_tosa(source, target, artifact, on_progress)]
    if front_end is PYTORCH:
        from mizzen.analysis.comparison.program import program_beside

        return [program_beside(data, name, target, artifact, on_progress)]
    if front_end is ONNX:
        from mizzen.analysis.comparison.onnx import onnx_beside

        return [onnx_beside(source, target, artifact, on_progress)]
    raise fail(
        "E489",
        f"a model must be a .tflite, .onnx, .tosa or .pt2 to have a reference, and {name} is none",
        help="run the artifact with `mizzen run`, and compare what it gives yourself",
    )


def _stream(network: Model, artifact: Artifact, compiled: Artifact) -> SideBySide:
    from mizzen.analysis.comparison.streams import StreamComparison
    from mizzen.analysis.comparison.truth import TfliteTruth

    return StreamComparison(TfliteTruth(network), artifact, compiled)


def _subgraphs(
    network: Model, target: ResolvedTarget, compiled: Artifact, artifact: Artifact | None
) -> Iterator[SideBySide]:
    """Return each subgraph that has steps as a network of its own. E487 where others have them."""
    from mizzen.artifact.alone import apart

    judged = None if artifact is None else artifact.subgraphs
    if judged is not None and len(judged) != len(compiled.subgraphs):
        raise fail(
            "E487",
            f"{compiled.name} has {len(compiled.subgraphs)} subgraphs that are executed, and "
            f"{judged[0].name} has {len(judged)}",
            help="give the model that the artifact was compiled from",
        )
    for place, subgraph in enumerate(compiled.subgraphs):
        seen, _ = apart(network, subgraph.contents.index)
        yield tflite_beside(seen, target, subgraph, None if judged is None else judged[place])


def tflite_beside(
    network: Model, target: ResolvedTarget, compiled: Artifact, artifact: Artifact | None
) -> TfliteComparison:
    """Return a network's artifact beside its reference.

    compiled  what is made of the network now
    artifact  what is judged; None for `compiled` itself
    """
    from mizzen.analysis.comparison.tflite import TfliteComparison
    from mizzen.compiler.folding import computed_once

    judged, constants = _beside(artifact, compiled)
    meaning = target.backend.tflite_meaning(computed_once(network), target.configuration)
    bounds = target.backend.tflite_bounds(network)
    right = None if artifact is None else compiled
    return TfliteComparison(network, judged, bounds, meaning, constants, right)


def _tosa(
    source: Source,
    target: ResolvedTarget,
    artifact: Artifact | None,
    on_progress: ProgressCallback | None,
) -> SideBySide:
    from mizzen.analysis.comparison.tosa import TosaComparison
    from mizzen.frontends.tosa import read

    compiled = compile_file(source, target, on_progress)
    given, constants = _beside(artifact, compiled)
    right = None if artifact is None else compiled
    graph = read(source.data, source.name)
    return TosaComparison(source.name, graph, given, constants, right)


def _beside(
    artifact: Artifact | None, compiled: Artifact
) -> tuple[Artifact, ConstantsComparison | None]:
    """Return the artifact that is judged, and what its constants are beside the model's."""
    if artifact is None:
        return compiled, None
    require_same(artifact, compiled)
    return with_origins(artifact, compiled), constants_beside(artifact, compiled)


def require_same(artifact: Artifact, compiled: Artifact) -> None:
    """Check that an artifact takes and gives what the model does. E487 if not."""
    for what, ours, theirs in (
        ("takes", artifact.inputs, compiled.inputs),
        ("gives", artifact.outputs, compiled.outputs),
    ):
        one, other = ([(info.dtype, info.size_bytes) for info in infos] for infos in (ours, theirs))
        if one != other:
            shown = (
                ", ".join(f"{info.name} {info.dtype}{list(info.shape)}" for info in infos)
                for infos in (theirs, ours)
            )
            raise fail(
                "E487",
                f"{artifact.name} must be made of this model, which {what} {next(shown)}, and it "
                f"{what} {next(shown)}",
                help="give the model that the artifact was compiled from",
            )


def run(compared: SideBySide, target: ResolvedTarget, inputs: Inputs) -> Comparison:
    """Infer what is asked for, and return what was found."""
    in_row = inputs.run or (RUN if compared.keeps_state else 1)
    arrays = inputs.arrays
    if arrays is None:
        count = inputs.count or ProofOptions().inputs_for(compared.values_bytes)
        arrays = compared.stimuli(count * in_row, inputs.seed)
    batch = batch_of(arrays, compared.artifact.inputs)
    in_row = min(in_row, batch.size) if inputs.run is None else in_row
    if batch.size % in_row:
        raise fail(
            "E493",
            f"inputs must be cut into rows of {in_row} inferences, and there are {batch.size}",
            help="give a number of inferences that --run divides",
        )
    streams = batch.size // in_row
    largest = max(1, BUDGET_BYTES // (compared.values_bytes * in_row))
    for start in range(0, streams, largest):
        stop = min(start + largest, streams)
        rows = list(_rows(batch.arrays, start, stop, in_row))
        try:
            compared.add(rows)
        except MizzenError as error:
            raise _blamed(error, _first(compared, rows[0])) from None
    layers, outputs = compared.result()
    seed = inputs.seed if inputs.arrays is None else None
    comparison = Comparison(
        compared.name,
        configuration_of(target),
        compared.reference,
        streams,
        in_row,
        seed,
        layers,
        outputs,
        compared.constants,
    )
    if comparison.holds:
        return comparison
    return replace(comparison, first=_first(compared, [each[::in_row] for each in batch.arrays]))


def _blamed(error: MizzenError, first: FirstDifference | None) -> MizzenError:
    """Return a fault with the operation that it comes of, where that is another one."""
    origin = error.diagnostic.origin
    if first is None or (origin is not None and origin.command == first.word):
        return error
    said = f"operation {first.index} of the stream, {first.kind} at word {first.word}, is wrong"
    return MizzenError(replace(error.diagnostic, help=f"{said}: {first.evidence.value}"))


def _first(compared: SideBySide, inputs: Sequence[Array]) -> FirstDifference | None:
    """Return the first wrong operation that some of the inputs show."""
    count = len(inputs[0]) if inputs else 1
    for start in range(0, count, AT_ONCE):
        found = compared.first_difference([each[start : start + AT_ONCE] for each in inputs])
        if found is not None:
            return found
    return None


def run_all(compared: Sequence[SideBySide], target: ResolvedTarget, inputs: Inputs) -> Comparison:
    """Infer what is asked for; of further subgraphs than the main one on inputs that are made."""
    made = replace(inputs, arrays=None)
    comparisons = [
        run(pair, target, made if place else inputs) for place, pair in enumerate(compared)
    ]
    if len(comparisons) == 1:
        return comparisons[0]
    constants = [
        comparison.constants for comparison in comparisons if comparison.constants is not None
    ]
    titles = [pair.artifact.title for pair in compared]
    return replace(
        comparisons[0],
        model=comparisons[0].model.removesuffix(f", {titles[0]}"),
        inputs=sum(comparison.inputs for comparison in comparisons),
        layers=tuple(
            replace(layer, name=f"{title}: {layer.name}")
            for title, comparison in zip(titles, comparisons, strict=True)
            for layer in comparison.layers
        ),
        outputs=tuple(
            replace(output, name=f"{title}: {output.name}")
            for title, comparison in zip(titles, comparisons, strict=True)
            for output in comparison.outputs
        ),
        constants=ConstantsComparison(
            sum(each.compared for each in constants),
            sum(each.others for each in constants),
            tuple(wrong for each in constants for wrong in each.wrong),
        )
        if constants
        else None,
    )


def _rows(arrays: Sequence[Array], start: int, stop: int, in_row: int) -> Iterator[list[Array]]:
    """Return the inputs of each inference in a row, for streams from `start` to before `stop`."""
    for place in range(in_row):
        yield [array[start * in_row + place : stop * in_row : in_row] for array in arrays]


def configuration_of(target: ResolvedTarget) -> dict[str, str]:
    """Return the names of the configuration in force."""
    document: dict[str, Any] = target.configuration.as_dict()
    names = ("accelerator", "system_config", "memory_mode", "optimise")
    return {name: str(document[name]) for name in names if document.get(name) is not None}


def failures_of(comparison: Comparison) -> Iterator[Diagnostic]:
    """Return errors for wrong differences: E483 at the first layer that has one, E692 constants."""
    if comparison.constants is not None:
        yield from (_constant_failure(each, comparison) for each in comparison.constants.wrong)
    wrong = comparison.wrong
    if not wrong and all(output.outcome is not Outcome.DIFFERS for output in comparison.outputs):
        return
    said = f"{comparison.differing:,} of {comparison.elements:,} output elements differ"
    if not wrong:
        first = comparison.first
        yield Diagnostic(
            "E483",
            f"what the NPU computes must be what {comparison.reference} does, and {said}",
            origin=None if first is None else replace(first.operator, command=first.word),
            help="nothing was seen of the layer: compare the artifact of `mizzen compile`"
            if first is None
            else f"look at operation {first.index} of the stream, {first.kind}: "
            f"{first.evidence.value}",
        )
    for layer in wrong:
        yield _failure(layer, comparison, said)


def notes_of(comparison: Comparison) -> Iterator[Diagnostic]:
    """Return a warning for each thing that the comparison cannot say.

    W496 for NPUs that round otherwise, W490 for layers of which nothing else could be seen, W323
    for constants that were not compared.
    """
    yield from _not_compared(comparison)
    rounded = sum(
        layer.outcome is Outcome.ROUNDED and layer.steps > 1 for layer in comparison.layers
    )
    unseen = sum(
        layer.outcome is Outcome.UNSEEN and layer.device is Device.NPU
        for layer in comparison.layers
    )
    if unseen:
        yield Diagnostic(
            "W490",
            f"every layer must be seen to be compared by itself, and {unseen} of "
            f"{len(comparison.layers)} are not: nothing says which operations of the stream are "
            "theirs",
            Severity.WARNING,
            help="give the options that the artifact was compiled with, as --optimise Size",
        )
    if rounded:
        yield Diagnostic(
            "W496",
            f"{rounded} of {len(comparison.layers)} layers differ by more than 1 from what the "
            "kernels of the CPU give: the NPU rounds otherwise, and they are bit for bit what the "
            "network gives in its roundings",
            Severity.WARNING,
            rule="docs/explanation/ethos-n-numbers.md",
            help="mizzen evaluate says what that does to the accuracy",
        )


def _not_compared(comparison: Comparison) -> Iterator[Diagnostic]:
    constants = comparison.constants
    if constants is not None and constants.others:
        yield Diagnostic(
            "W323",
            f"the constants of every operation must be compared with the model's, and those of "
            f"{constants.others} of {constants.others + constants.compared} are not: the artifact "
            "has other operations than a compilation of the model has now",
            Severity.WARNING,
            help="give the options that the artifact was compiled with, as --optimise Size",
        )


def _constant_failure(constant: ConstantDifference, comparison: Comparison) -> Diagnostic:
    place = ", ".join(map(str, constant.where))
    message = (
        f"{constant.what} of an operation must be the model's, and {constant.differing:,} of "
        f"{constant.elements:,} are not, the first at [{place}]: {constant.npu} instead of "
        f"{constant.reference}"
    )
    if constant.what == OPERANDS:
        message = (
            "an operation must read what the same operations as in the model write, and "
            f"{constant.differing} of its {constant.elements} feature maps have other bytes, the "
            f"first at place {place}"
        )
    return Diagnostic(
        "E692",
        message,
        origin=replace(constant.origin, model=comparison.model),
        help="the artifact is damaged, or made of another model: compile the model again",
    )


def _failure(layer: LayerComparison, comparison: Comparison, said: str) -> Diagnostic:
    from mizzen.diagnostics import Origin

    first = ""
    if layer.first is not None:
        place = ", ".join(map(str, layer.first.index))
        first = (
            f", the first at [{place}] of inference {layer.first.inference}: {layer.first.npu:g} "
            f"instead of {layer.first.reference:g}"
        )
    return Diagnostic(
        "E483",
        f"layer {layer.index} must compute what {comparison.reference} does, and "
        f"{layer.differing:,} of {layer.elements:,} elements differ, by up to "
        f"{layer.steps:g}{first}; {said}",
        origin=Origin(comparison.model, layer.index, layer.kind, layer.name),
        help="the artifact is damaged, or its compiler is wrong there: compile the model again, "
        "and read docs/explanation/exceptions.md",
    )
