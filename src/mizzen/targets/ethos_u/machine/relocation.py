"""A program whose inputs and outputs have regions of their own, with all of them in the scratch.

Runtimes of microcontrollers hand over the scratch memory alone. So the two regions are put after
it, one after the other, and every address that counted from them counts from there. Registers keep
their values, and a stream may set a region without its addresses: each operation gets what it needs
of both, where that is not there yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from mizzen.isa import Instruction, Kind
from mizzen.targets.ethos_u.machine.base_pointers import FIRST_OF_TENSORS, OutsideMemory
from mizzen.targets.ethos_u.machine.commands import Arch, encode, instruction_set
from mizzen.targets.ethos_u.machine.program import (
    Program,
    RegionIndex,
    TensorAddress,
    accelerator_of,
)

REGION_ALIGNMENT_BYTES = 64
"""Of what lies in the scratch, at least as much as any map needs."""

Starts = Mapping[int, int]
"""Where in the scratch a region starts, in bytes."""

_ADDRESSES = {
    "SET_IFM_REGION": tuple(f"SET_IFM_BASE{tile}" for tile in range(4)),
    "SET_IFM2_REGION": tuple(f"SET_IFM2_BASE{tile}" for tile in range(4)),
    "SET_OFM_REGION": tuple(f"SET_OFM_BASE{tile}" for tile in range(4)),
    "SET_DMA0_SRC_REGION": ("SET_DMA0_SRC",),
    "SET_DMA0_DST_REGION": ("SET_DMA0_DST",),
}
"""The addresses that count from a region."""

_REGION_OF = {address: region for region, group in _ADDRESSES.items() for address in group}


def in_scratch(program: Program) -> Program:
    """Return a program without regions of tensors. Raises as `Program.instructions`."""
    starts: dict[int, int] = {}
    end = program.region_bytes.get(RegionIndex.SCRATCH, 0)
    for region in sorted(program.region_bytes):
        if region >= FIRST_OF_TENSORS:
            starts[region] = end + -end % REGION_ALIGNMENT_BYTES
            end = starts[region] + program.region_bytes[region]
    if not starts:
        return program
    arch = accelerator_of(program.hardware).arch
    sizes = {key: held for key, held in program.region_bytes.items() if key not in starts}
    return replace(
        program,
        words=encode(_moved(program.instructions, starts, arch), arch),
        region_bytes={**sizes, int(RegionIndex.SCRATCH): end},
        inputs=tuple(_place(each, starts) for each in program.inputs),
        outputs=tuple(_place(each, starts) for each in program.outputs),
        origins={},
    )


def _place(tensor: TensorAddress, starts: Starts) -> TensorAddress:
    start = starts.get(tensor.region)
    if start is None:
        return tensor
    return replace(tensor, region=int(RegionIndex.SCRATCH), offset=start + tensor.offset)


def _moved(
    instructions: Iterable[Instruction], starts: Starts, arch: Arch
) -> Iterator[Instruction]:
    """Return the commands with the settings of addresses before the operations that use them."""
    wanted: dict[str, Instruction] = {}
    given: dict[str, Instruction] = {}
    outside = OutsideMemory()
    for instruction in instructions:
        outside.note(instruction)
        if instruction.name in _REGION_OF or instruction.name in _ADDRESSES:
            wanted[instruction.name] = instruction
            continue
        if instruction.command.kind is Kind.OPERATION:
            for setting in _settings(wanted, outside, starts, arch):
                held = given.get(setting.name)
                if held is None or held.values != setting.values:
                    given[setting.name] = setting
                    yield setting
        yield instruction


def _settings(
    wanted: Mapping[str, Instruction], outside: OutsideMemory, starts: Starts, arch: Arch
) -> Iterator[Instruction]:
    commands = instruction_set(arch)
    for name, setting in wanted.items():
        region = wanted.get(_REGION_OF.get(name, name))
        in_memory = region is not None and region.name not in outside
        start = starts.get(region.values["region"]) if region and in_memory else None
        if start is None:
            yield setting
        elif name in _ADDRESSES:
            yield commands[name](**{**setting.values, "region": int(RegionIndex.SCRATCH)})
        else:
            ((field, address),) = setting.values.items()
            yield commands[name](**{field: address + start})
