"""What the public sources leave open: how it is taken here, and how far a device may differ.

The simulator executes these, and says so once for a program that uses one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mizzen.diagnostics import Diagnostic, Severity
from mizzen.targets.ethos_n.commands_values import (
    Algorithm,
    Command,
    Convert,
    Location,
    McePle,
    PleOnly,
    PleOperation,
    SpaceToDepth,
    Upsample,
)
from mizzen.targets.ethos_n.commands_values import TensorRecord as Tensor
from mizzen.targets.ethos_n.sim.dram import GROUP, is_compressed
from mizzen.targets.ethos_n.sim.geometry import Where

LARGEST_CLOSE_KERNEL = 3
RESCALING = (PleOperation.ADDITION_RESCALE, PleOperation.LEAKY_RELU)


@dataclass(frozen=True, slots=True)
class InferredPath:
    """A row: what is open and how it is taken, and which commands depend on it.

    bound  by how much an element may differ on a device; None where it is not known
    """

    code: str
    what: str
    bound: int | None
    applies: Callable[[Command], bool]


def _is_mce(command: Command) -> bool:
    return isinstance(command, McePle)


def _is_winograd(command: Command) -> bool:
    return isinstance(command, McePle) and command.mce.algorithm is Algorithm.WINOGRAD


def _is_large(command: Command) -> bool:
    if not isinstance(command, McePle):
        return False
    return max(command.weights.shape[:2]) > LARGEST_CLOSE_KERNEL


def _is_sigmoid(command: Command) -> bool:
    return isinstance(command, McePle) and command.ple.operation is PleOperation.SIGMOID


def _is_bilinear(command: Command) -> bool:
    return isinstance(command, McePle) and command.mce.upsample is Upsample.BILINEAR


def _maps(command: Command) -> tuple[Tensor, ...]:
    match command:
        case McePle() | Convert() | SpaceToDepth():
            return command.input, command.output
        case PleOnly():
            return command.input0, command.output
        case _:
            return ()


def _is_fcaf(command: Command) -> bool:
    return any(is_compressed(record.format) for record in _maps(command))


def _rescales_far(command: Command) -> bool:
    if not isinstance(command, McePle | PleOnly) or command.ple.operation not in RESCALING:
        return False
    ple = command.ple
    pairs = ((ple.multiplier0, ple.shift0), (ple.multiplier1, ple.shift1))
    return any(multiplier and not shift for multiplier, shift in pairs)


def _is_cut_in_sram(command: Command) -> bool:
    """Say whether a tensor that lies in SRAM as one stripe is read in stripes that do not."""
    if not isinstance(command, McePle) or command.input.location is not Location.SRAM:
        return False
    (_, height, width, depth), stripe = command.input.shape, command.input.stripe_shape
    is_high, is_wide = height > GROUP[0], width > GROUP[1]
    return (is_high and stripe[2] < width) or ((is_high or is_wide) and stripe[3] < depth)


def _is_space_to_depth(command: Command) -> bool:
    return isinstance(command, SpaceToDepth)


INFERRED = (
    InferredPath(
        "N690", "the rounding of the compute engine's shift, taken as half up", 1, _is_mce
    ),
    InferredPath("N691", "Winograd transforms, computed as direct sums", 2, _is_winograd),
    InferredPath("N692", "sums of kernels over 3 rows or columns, taken as exact", 3, _is_large),
    InferredPath("N693", "EXP2 and RCP, taken to round to the nearest", 1, _is_sigmoid),
    InferredPath("N694", "bilinear upsampling, taken as means rounded half up", 1, _is_bilinear),
    InferredPath("N695", "compressed tensors, kept as they are", 0, _is_fcaf),
    InferredPath("N696", "SPACE_TO_DEPTH, taken as blocks by rows", None, _is_space_to_depth),
    InferredPath(
        "N697",
        "a rescaling by 2**15 or more, whose shift of 0 less 1 is taken as 31",
        None,
        _rescales_far,
    ),
    InferredPath(
        "N698",
        "stripes of columns or channels of what stays in SRAM by rows, taken as parts of it",
        None,
        _is_cut_in_sram,
    ),
)
"""The bounds are the tolerances of Arm's own system tests against its reference, where there are
any."""


def inferred(where: Where, command: Command) -> Iterator[Diagnostic]:
    """Return a note for every open point that a command depends on."""
    for path in INFERRED:
        if path.applies(command):
            yield Diagnostic(path.code, f"{where}: {_said(path)}", Severity.NOTE, where.origin)


def _said(path: InferredPath) -> str:
    if path.bound is None:
        return f"the sources leave open {path.what}; compare with a device before you rely on it"
    differ = f"may differ by {path.bound}" if path.bound else "do not differ for it"
    return f"the sources leave open {path.what}; elements on a device {differ}"
