"""Say which operators left to the CPU have no kernel on a device, by computing each once.

TFLite Micro tells what a kernel refuses only when it prepares or computes an operator, so each
kind of operator is computed alone, on zeros. This host may compute what a device has no kernel for
(`mizzen.cpu.host`). What the application brings as kernels of its own is not known here: the
artifact is complete, and the answer a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mizzen.artifact.artifact import Artifact
from mizzen.artifact.interface import Array
from mizzen.artifact.steps import CpuStep, read_network
from mizzen.artifact.views import within
from mizzen.compiler.report import with_diagnostics
from mizzen.cpu import tflm
from mizzen.cpu.host import Computer, HostKernels
from mizzen.diagnostics import Diagnostic, MizzenError, Origin, Severity
from mizzen.frontends.tflite import Model, Operator, Tensor, macs, zero_of
from mizzen.frontends.tflite.subgraphs import CALLERS
from mizzen.package.tflite.extract import extract

MOST_MACS = 1 << 26
"""Of an operator that is tried: a tenth of a second. Whether larger ones have kernels is not."""

NOT_TRIED = ("E130", "E131")
"""Operators that cannot stand alone say nothing."""

USE_ANOTHER = "use operators that TFLite Micro has, or that the NPU takes"
OWN_KERNEL = "nothing needs doing if the application brings a kernel of its own"

Signature = tuple[object, ...]


SCALE_ERROR = 1e-3

TAKEN_FOR: dict[tuple[str, str], tuple[int, int]] = {
    ("L2_NORMALIZATION", "INT8"): (128, 0),
    ("LOGISTIC", "INT8"): (256, -128),
    ("TANH", "INT8"): (128, 0),
}
"""What TFLite Micro's kernels take an output's quantisation for without a look at the file's: its
scale, by the reciprocal, and zero point."""


def with_kernel_warnings(artifact: Artifact, model: Model) -> Artifact:
    """Add warnings to an artifact's report for what the kernels of a device do not have, or read.

    model  that the artifact was made of
    """
    return with_diagnostics(artifact, (*_missing(artifact), *_not_read(model)))


def _missing(artifact: Artifact) -> Iterator[Diagnostic]:
    if not tflm.is_installed():
        return
    tried: set[Signature] = set()
    for step in (step for contents in within(artifact.contents) for step in contents.steps):
        if not isinstance(step, CpuStep):
            continue
        model = read_network(step.network, artifact.name)
        for operator, original in zip(model.main.operators, step.origins, strict=True):
            signature = _signature(model, operator)
            is_large = macs(model.main, operator) > MOST_MACS
            # A loop that begins with zeros may have no end.
            if signature in tried or is_large or operator.kind in CALLERS:
                continue
            tried.add(signature)
            outcome = _tried(model, operator)
            match outcome:
                case Diagnostic():
                    yield _stops(operator, original, outcome)
                case Computer.GRAPH | Computer.LITERT:
                    yield _not_on_device(operator, original, outcome)
                case _:
                    pass


def _not_read(model: Model) -> Iterator[Diagnostic]:
    """Warn of outputs whose scale and zero point in the file the kernels do not read."""
    for subgraph in model.subgraphs:
        yield from _not_read_in(replace(model, subgraphs=(subgraph,)))


def _not_read_in(model: Model) -> Iterator[Diagnostic]:
    for operator in model.main.operators:
        outputs = model.main.present(operator.outputs)
        fixed = TAKEN_FOR.get((operator.kind, outputs[0].type.name)) if outputs else None
        quantization = outputs[0].quantization if outputs else None
        if fixed is None or quantization is None or not quantization.scale:
            continue
        (one, zero), scale, zero_point = fixed, quantization.scale[0], quantization.zero_point[0]
        if abs(scale * one - 1) > SCALE_ERROR or zero_point != zero:
            yield Diagnostic(
                "W317",
                f"TFLite Micro's kernel of {operator.kind}, and so what is compiled, computes "
                f"numbers of scale 1/{one} and zero point {zero}, but the network says {scale:.6g} "
                f"and {zero_point}",
                Severity.WARNING,
                model.origin(operator),
                help=f"quantise its output with scale 1/{one} and zero point {zero}, and QUANTIZE "
                "it to what is wanted",
            )


def _stops(operator: Operator, original: Origin, error: Diagnostic) -> Diagnostic:
    return Diagnostic(
        "W309",
        f"{operator.kind} is on the CPU, where `mizzen run` stops at it: {error.message}",
        Severity.WARNING,
        original,
        help=f"{error.help or USE_ANOTHER}; {OWN_KERNEL}",
    )


def _not_on_device(operator: Operator, original: Origin, computer: Computer) -> Diagnostic:
    return Diagnostic(
        "W316",
        f"{operator.kind} is on the CPU, and TFLite Micro has no kernel that takes it: on this "
        f"host {computer.value} computes it, a device cannot",
        Severity.WARNING,
        original,
        help=f"{USE_ANOTHER}; {OWN_KERNEL}",
    )


def _signature(model: Model, operator: Operator) -> Signature:
    """Return the facts that decide whether there is a kernel: types, ranks and extents."""
    tensors = model.main.present((*operator.inputs, *operator.outputs))
    return operator.kind, tuple((tensor.type, tensor.shape) for tensor in tensors)


def _tried(model: Model, operator: Operator) -> Diagnostic | Computer | None:
    """Return who computes an operator here, or why nothing does; None if that is not known."""
    try:
        part = extract(model.record, [operator.index])
        tensors = model.main.tensors
        zeros = [_zeros(tensors[index]) for index in part.inputs]
        kernels = HostKernels(part.network)
        kernels.run(zeros, 1)
    except MizzenError as error:
        return None if error.diagnostic.code in NOT_TRIED else error.diagnostic
    return kernels.computers.get(0, Computer.TFLM)


def _zeros(tensor: Tensor) -> Array:
    """Return one inference of the number that stands for zero, as far as the type has it."""
    dtype: np.dtype[Any] = tensor.dtype or np.dtype(np.uint8)
    zero = zero_of(tensor.quantization)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        zero = min(max(zero, int(limits.min)), int(limits.max))
    return np.full((1, *tensor.shape), zero, dtype)
