"""Run networks of one operator through a compiler, execute the result, and compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mizzen.artifact.loading import artifact_of
from mizzen.conformance.compilers import Built, Compiler, NotBuilt, build
from mizzen.conformance.exceptions import excused
from mizzen.conformance.networks import Case
from mizzen.conformance.oracles import expected
from mizzen.conformance.verdict import Difference, Row, Verdict
from mizzen.diagnostics import MizzenError
from mizzen.targets.ethos_u.machine.config import EthosUConfiguration

Array = npt.NDArray[Any]

DEFAULT_INPUTS = 8

ALL_ALIKE = "the kernels give one value only, which tests nothing"
WITHOUT_REASON = "the compiler leaves it there without a reason"

NOT_EXECUTABLE = "E605"
"""The simulator's code for an accelerator that this build does not execute."""
NOT_INSTALLED = frozenset({"E300", "E701", "E721"})
"""Codes of packages that are not there, which are no verdict."""


def judge(case: Case, compiler: Compiler, configuration: EthosUConfiguration, inputs: int) -> Row:
    """Compile a case, execute it on `inputs` random inputs, and compare with its oracle.

    E300, E701 or E721 where compiler or kernels are not installed; all else is in the row.
    """
    outcome = _judged(case, compiler, configuration, inputs)
    return excused(outcome, compiler, configuration.accelerator.arch)


def _judged(case: Case, compiler: Compiler, configuration: EthosUConfiguration, inputs: int) -> Row:
    accelerator = configuration.accelerator
    outcome = partial(Row, case.name, case.operator, case.dtype, accelerator.name)
    if not compiler.compiles_for(accelerator.arch):
        said = f"the compiler does not know {accelerator.arch.value}"
        return outcome(Verdict.NOT_RUN, said)
    network = case.build()
    try:
        built = build(network, f"{case.name}.tflite", compiler, configuration)
        match built:
            case NotBuilt():
                return outcome(built.verdict, built.said)
            case Built():
                return _executed(case, network, built, inputs, outcome)
    except MizzenError as error:
        return outcome(_failed(error), error.diagnostic.message)


def _executed(case: Case, network: bytes, built: Built, count: int, outcome: partial[Row]) -> Row:
    """Return the verdict on what was compiled; raises where it does not run to its end."""
    artifact = artifact_of(built.network, case.name)
    if artifact.steps and not any(step.on_npu for step in artifact.steps):
        return outcome(Verdict.CPU, "; ".join(built.reasons) or WITHOUT_REASON)
    inputs = random_inputs(
        [(info.shape, info.dtype) for info in artifact.inputs], count, case.limit
    )
    results = artifact.run(*inputs)
    theirs, oracle = expected(case, network, inputs)
    if any(output.size > 1 and (output == output.flat[0]).all() for output in theirs):
        return outcome(Verdict.NOT_COMPARED, ALL_ALIKE)
    difference = compare(results if isinstance(results, tuple) else (results,), theirs)
    verdict = Verdict.OFF if difference.differing else Verdict.EXACT
    return outcome(verdict, difference=difference, oracle=oracle.value)


def _failed(error: MizzenError) -> Verdict:
    """Say what an error means: of what the compiler gave, of the NPU, or of kernels on the CPU."""
    match error.diagnostic.code:
        case code if code in NOT_INSTALLED:
            raise error
        case code if code == NOT_EXECUTABLE:
            return Verdict.NOT_RUN
        case code if code.startswith("E7"):
            return Verdict.NOT_COMPARED
        case _:
            return Verdict.FAULTY


def compare(ours: Sequence[Array], theirs: Sequence[Array]) -> Difference:
    """Measure how far integers or booleans are from others of as many elements."""
    steps = np.concatenate([
        np.abs(mine.astype(np.int64).ravel() - other.astype(np.int64).ravel())
        for mine, other in zip(ours, theirs, strict=True)
    ])  # fmt: skip
    return Difference(int(steps.max(initial=0)), int(np.count_nonzero(steps)), steps.size)


def run(
    cases: Sequence[Case],
    compiler: Compiler,
    configurations: Sequence[EthosUConfiguration],
    inputs: int = DEFAULT_INPUTS,
) -> Iterator[Row]:
    """Judge every case on every configuration, case by case."""
    for case in cases:
        for configuration in configurations:
            yield judge(case, compiler, configuration, inputs)


Array = npt.NDArray[Any]


def random_inputs(
    inputs: Sequence[tuple[Sequence[int], npt.DTypeLike]], count: int, limit: int | None = None
) -> list[Array]:
    """Return uniformly random integers for inputs of these shapes and types, `[count, *shape]`.

    The same for the same shapes, types and count. `limit` is the largest magnitude of wider
    values than bytes.
    """
    rng = np.random.default_rng(count)
    made: list[Array] = []
    for shape, type_ in inputs:
        dtype = np.dtype(type_)
        low, high = _range(dtype, limit)
        values = rng.integers(low, high, (count, *shape), endpoint=True)
        made.append(values.astype(dtype))
    return made


def _range(dtype: np.dtype[Any], limit: int | None) -> tuple[int, int]:
    if dtype == np.bool_:
        return 0, 1
    if dtype.itemsize > 1 and limit is not None:
        return -limit, limit
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)
