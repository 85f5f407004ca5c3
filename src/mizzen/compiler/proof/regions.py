"""Prove the code of a region of a tensor graph: execute it, and evaluate the region's graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.interface import Values
from mizzen.artifact.program import ProgramReference
from mizzen.artifact.region_step import RegionStep
from mizzen.compiler.codegen import OperatorCode, RegionCode, step_of
from mizzen.compiler.proof.accesses import require_order
from mizzen.compiler.proof.difference import difference
from mizzen.compiler.proof.findings import RegionFindings
from mizzen.compiler.proof.options import ProofOptions
from mizzen.compiler.proof.stimuli import Stimulus, stimuli, stimulus
from mizzen.diagnostics import MizzenError
from mizzen.graph import Graph, Value, other_sign
from mizzen.ops.data_layout import Reshape, Tile, Transpose
from mizzen.ops.elementwise import ArithmeticRightShift, LogicalLeftShift, LogicalRightShift
from mizzen.ops.type_conversion import Cast
from mizzen.partition import Extracted
from mizzen.reference import CustomKernel, evaluate, evaluate_batch
from mizzen.report.proof import Proof

Array = npt.NDArray[Any]

LARGEST_ELEMENT_BYTES = 2
"""Of feature maps; wider values are sums on the way to one, and let go at once."""


Execute = Callable[[Sequence[Array], int], Sequence[Array]]
"""Computes so many inferences of inputs `[count, *shape]`."""


def prove_region(
    code: RegionCode,
    region: Extracted,
    options: ProofOptions,
    custom: CustomKernel | None = None,
) -> RegionFindings:
    """Execute a region's code, and compare; `region` is it as it was before it was compiled.

    custom  computes what is CUSTOM in it
    """
    step = region_step(code)
    try:
        unlike = code.unlike_told(step, options.seed)
    except MizzenError as error:
        return RegionFindings(Proof(0, options.seed), error)
    if unlike is not None:
        return unlike
    reference = code.reference if isinstance(code, OperatorCode) else None
    findings = prove_graph(
        region.graph,
        lambda inputs, count: computed(code, inputs, count, step=step),
        options,
        None if reference is None else lambda row, count: computed(code, row, count, reference),
        custom,
    )
    against = code.against if isinstance(code, OperatorCode) else ""
    return replace(findings, proof=replace(findings.proof, against=against))


def prove_graph(
    graph: Graph,
    execute: Execute,
    options: ProofOptions,
    reference: Execute | None = None,
    custom: CustomKernel | None = None,
) -> RegionFindings:
    """Execute what was made of a graph, and compare.

    reference  says what must come; None for what the graph computes
    custom     computes what is CUSTOM in it

    Inputs for which TOSA leaves the results open are passed over.
    """
    inputs, expected = _expected(graph, options, custom)
    count = len(expected[0]) if expected else 0
    if not count:
        said = f'"{graph.name}" because TOSA leaves its results open for every input that was tried'
        return RegionFindings(Proof(0, options.seed, unproved=(said,)))
    if reference is not None:
        expected = reference(inputs, count)
    return compared(lambda: execute(inputs, count), inputs, expected, options)


def compared(
    execute: Callable[[], Sequence[Array]],
    inputs: Sequence[Array],
    expected: Sequence[Array],
    options: ProofOptions,
) -> RegionFindings:
    """Compare what is executed with what must come, `[count, *shape]` each.

    inputs  that it is executed with, for the digest
    """
    try:
        outputs = execute()
    except MizzenError as error:
        return RegionFindings(Proof(0, options.seed), error)
    digest = sha256(b"".join(np.ascontiguousarray(row).tobytes() for row in (*inputs, *outputs)))
    wrong = next(
        (
            differs
            for ours, theirs in zip(outputs, expected, strict=True)
            if (differs := difference(ours, theirs)) is not None
        ),
        None,
    )
    equal = len(outputs) if wrong is None else 0
    count = len(expected[0]) if expected else 0
    proof = Proof(count, options.seed, digest.hexdigest(), parts=1, equal=equal)
    return RegionFindings(proof, wrong)


def _expected(
    graph: Graph, options: ProofOptions, custom: CustomKernel | None
) -> tuple[list[Array], Sequence[Array]]:
    """Return inputs, and what the reference gives for them; those without an answer left out."""
    used = sum(
        int(np.prod(value.shape, dtype=np.int64)) * np.dtype(value.dtype.numpy).itemsize
        for operation in graph
        for value in operation.results
        if np.dtype(value.dtype.numpy).itemsize <= LARGEST_ELEMENT_BYTES
    )
    count = options.inputs_for(used)
    inputs = graph_stimuli(graph, count, options.seed)
    try:
        return inputs, evaluate_batch(graph, inputs, count, custom=custom)
    except MizzenError:
        return _answered(graph, inputs, count)


def _answered(
    graph: Graph, inputs: Sequence[Array], count: int
) -> tuple[list[Array], Sequence[Array]]:
    """Return the inputs that have an answer, and these answers."""
    answers: list[list[Array]] = []
    kept: list[int] = []
    for index in range(count):
        try:
            answers.append(evaluate(graph, [array[index] for array in inputs]))
        except MizzenError:
            continue
        kept.append(index)
    if not kept:
        return [], []
    expected = [np.stack(results) for results in zip(*answers, strict=True)]
    return [array[kept] for array in inputs], expected


def graph_stimuli(graph: Graph, count: int, seed: int) -> list[Array]:
    """Return `count` inferences of a graph's inputs, `[count, *shape]` each."""
    return stimuli([_stimulus(value) for value in graph.inputs], count, seed)


SHIFTS = (ArithmeticRightShift, LogicalLeftShift, LogicalRightShift)
SHIFTED_BITS = 16
"""Half of the bits of the widest numbers."""

HANDED_ON = (Cast, Reshape, Tile, Transpose)
"""Operations whose results have the numbers that they take."""


def _is_amount(value: Value) -> bool:
    """Whether a value says by how many bits others are shifted."""
    waiting, seen = [value], set[Value]()
    while waiting:
        other = waiting.pop()
        seen.add(other)
        for user in other.uses:
            if isinstance(user, SHIFTS) and user.input2 is other:
                return True
            if isinstance(user, HANDED_ON) and user.results[0] not in seen:
                waiting.append(user.results[0])
    return False


def _stimulus(value: Value) -> Stimulus:
    if _is_amount(value):
        # TOSA leaves open what comes of others. What is shifted has the type of the amounts, which
        # PyTorch brings to one, before it is computed with more bits; of 32 bits the numbers are
        # kept to half of these (`WIDE_LIMIT`), so that none leaves them.
        dtype = value.dtype.numpy
        return Stimulus(value.shape, dtype, 0, min(8 * dtype.itemsize, SHIFTED_BITS) - 1)
    quantization = value.quantization
    zero = (
        quantization.zero_points[0] if quantization is not None and quantization.zero_points else 0
    )
    return stimulus(value.shape, value.dtype.numpy, zero)


def region_step(code: RegionCode) -> RegionStep:
    """Return what executes a region's code alone."""
    return step_of(code, _places(code))


def _places(code: RegionCode) -> dict[object, int]:
    """Return numbers of a region's inputs and outputs."""
    part, places = code.part, dict[object, int]()
    for value in (*part.inputs, *part.outputs):
        places.setdefault(value, len(places))
    return places


def computed(
    code: RegionCode,
    inputs: Sequence[Array],
    count: int,
    reference: ProgramReference | None = None,
    step: RegionStep | None = None,
    simulator: Any = None,
) -> list[Array]:
    """Return what the code, or its reference, computes for the region's inputs.

    step       of the code, as `region_step` gives it, if there is one already
    simulator  of its program, if not the step's own
    """
    part, places = code.part, _places(code)
    values: Values = {
        places[value]: other_sign(array) if _is_unsigned(code, index) else array
        for value, array, index in zip(part.inputs, inputs, code.model.main.inputs, strict=True)
    }
    step = step or region_step(code)
    if reference is None:
        require_order(step)
    step.run_on(reference or simulator or step.simulator, values, count)
    return [
        other_sign(values[places[value]]) if _is_unsigned(code, index) else values[places[value]]
        for value, index in zip(part.outputs, code.model.main.outputs, strict=True)
    ]


def _is_unsigned(code: RegionCode, index: int) -> bool:
    """Whether a tensor of the code has unsigned bytes, 128 more than those of the graph."""
    return code.model.main.tensors[index].dtype == np.uint8
