"""What is known of a pass, and its figures, named and ordered as the library prints them.

Ref: Ethos-N driver stack 23.02, `Support.hpp` (`PassStats` and its parts, `EstimationOptions`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mizzen.diagnostics import fail
from mizzen.targets.ethos_n.commands_values import (
    Cascade,
    Convert,
    McePle,
    PleOnly,
    PleOperation,
    SpaceToDepth,
    TensorRecord,
)
from mizzen.targets.ethos_n.program import Program
from mizzen.targets.ethos_n.tensors import Shape


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a pass moves of its inputs or outputs; bytes are those of all times that it does so.

    dram_parallel_bytes      moved while the engines work
    dram_non_parallel_bytes  moved while they wait
    sram_bytes               that need not be moved
    central_stripes          stripes without those at boundaries
    boundary_stripes         parts of stripes above and below, kept apart
    reloads                  how often everything is moved once more
    """

    dram_parallel_bytes: int = 0
    dram_non_parallel_bytes: int = 0
    sram_bytes: int = 0
    central_stripes: int = 0
    boundary_stripes: int = 0
    reloads: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.dram_parallel_bytes + other.dram_parallel_bytes,
            self.dram_non_parallel_bytes + other.dram_non_parallel_bytes,
            self.sram_bytes + other.sram_bytes,
            self.central_stripes + other.central_stripes,
            self.boundary_stripes + other.boundary_stripes,
            self.reloads + other.reloads,
        )


@dataclass(frozen=True, slots=True)
class WeightTraffic:
    """What a pass moves of its weights, and the part of their bytes that encoding them saves."""

    traffic: Traffic = Traffic()
    compression_savings: float = 0.0


@dataclass(frozen=True, slots=True)
class MceWork:
    """Operations that the result needs (two for a product and its sum), and cycles for them."""

    operations: int = 0
    cycles: int = 0


@dataclass(frozen=True, slots=True)
class PleWork:
    """Patches of 4 x 4 elements that each engine's lanes process, and the kernel."""

    patches: int = 0
    operation: PleOperation = PleOperation.ADDITION


@dataclass(frozen=True, slots=True)
class Statistics:
    """All figures of a pass."""

    input: Traffic = Traffic()
    output: Traffic = Traffic()
    weights: WeightTraffic = WeightTraffic()
    mce: MceWork = MceWork()
    ple: PleWork = PleWork()


@dataclass(frozen=True, slots=True)
class EstimationOptions:
    """How an estimate departs from what the hardware is given.

    activation_compression_saving    the part of a feature map's bytes that compressing it saves, 0
                                     to 1, where it is compressed in DRAM
    use_weight_compression_override  whether weights are taken to be compressible by a given part,
                                     not as they are; see `with_compressible_weights`
    weight_compression_saving        that part, 0 to 1
    current                          whether to estimate what is compiled today. The library's
                                     default is another plan, of a compiler that makes no streams
                                     for release 23.02's firmware; Mizzen has one compiler, whose
                                     streams it estimates in both cases
    """

    activation_compression_saving: float = 0.0
    use_weight_compression_override: bool = False
    weight_compression_saving: float = 0.0
    current: bool = False


AS_IT_IS = EstimationOptions()
"""Nothing is saved but what the encoder saves."""


ParentIds = tuple["int | ParentIds", ...]
"""For each input of a pass, the place of the pass that makes it, or the inputs of what is no pass.

So it is () for an input of the network, and nested for a concatenation or a reshape.
"""
PassCommand = McePle | PleOnly | Convert


@dataclass(frozen=True, slots=True)
class Pass:
    """A command, and what it does not say of itself.

    operation_ids        of the network's operations that it carries out, ascending
    parents              where its inputs come from
    weight_stripe_bytes  encoded size of each stripe of its weights, in the stream's order
    weights_shape        of its weights as the network has them, H W I O, or None where the command
                         says it; a Winograd kernel's extents are rounded up to multiples of 3 there
    """

    command: PassCommand
    operation_ids: tuple[int, ...] = ()
    parents: ParentIds = ()
    weight_stripe_bytes: tuple[int, ...] = ()
    weights_shape: Shape | None = None


def passes_of(program: Program) -> list[Pass]:
    """Return the passes of a compiled network, whose operations and parents are not known.

    Commands that only dump, wait or mark are none. E928 and E929 for weights that are not there,
    E982 for a command that cannot be estimated.
    """
    found: list[Pass] = []
    for command in program.commands:
        match command:
            case McePle():
                sizes = tuple(place.size for place in program.weight_stripes(command))
                found.append(Pass(command, weight_stripe_bytes=sizes))
            case PleOnly() | Convert():
                found.append(Pass(command))
            case SpaceToDepth() | Cascade():
                name = type(command).__name__
                raise fail("E982", f"a pass must be McePle, PleOnly or Convert, not {name}")
            case _:
                pass
    return found


def require_possible(row: Pass) -> None:
    """E983 for a pass that no compiler makes: parts without extent, or weights without stripes."""
    command = row.command
    for what, count in _counts(row):
        if count <= 0:
            name = type(command).__name__
            raise fail("E983", f"{what} of a pass must be at least 1, and is {count} in {name}")
    if isinstance(command, PleOnly) and command.input_count > 2:
        raise fail("E983", f"inputs of a pass must be at most 2, and are {command.input_count}")


def _counts(row: Pass) -> Iterator[tuple[str, int]]:
    """Return what must not be 0, with its name."""
    command = row.command
    for record in tensors_of(command):
        yield "the stripe extents", min(record.stripe_shape)
        yield "the extents", min(record.shape)
    if isinstance(command, PleOnly):
        yield "the inputs", command.input_count
    if isinstance(command, McePle):
        yield "the weights' stripes", len(row.weight_stripe_bytes)
        yield "the weights' extents", min(row.weights_shape or command.weights.shape)
        yield "the block's extents", min(command.block_config.width, command.block_config.height)
        yield "the strides", min(command.mce.stride_x, command.mce.stride_y)
        yield "the engine's stripe extents", min(command.mce.output_stripe_shape)
        yield "the engine's extents", min(command.mce.output_shape)


def tensors_of(command: PassCommand) -> tuple[TensorRecord, ...]:
    """Return the feature maps of a pass: its inputs, then its output."""
    match command:
        case PleOnly():
            return *(command.input0, command.input1)[: command.input_count], command.output
        case McePle() | Convert():
            return command.input, command.output
