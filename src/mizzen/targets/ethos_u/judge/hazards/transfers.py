"""Transfers from registers: source, destination and indices, for each architecture."""

from __future__ import annotations

from collections.abc import Iterator

from mizzen.diagnostics import Origin
from mizzen.isa.command import Instruction
from mizzen.targets.ethos_u.judge.hazards.footprint import Footprint, footprint, grid, run
from mizzen.targets.ethos_u.judge.hazards.maps import INTERNAL, MemoryBlock
from mizzen.targets.ethos_u.judge.hazards.operations import Access, Transfer
from mizzen.targets.ethos_u.judge.hazards.registers import Registers

INDEX_BYTES = 4


def transfer_u55(registers: Registers, instruction: Instruction, origin: Origin) -> Transfer:
    """Return the transfer of a DMA_START of U55 or U65; rows are packed at the source."""
    lines, planes = _counts(registers)
    length = registers.number("SET_DMA0_LEN")
    skip = registers.number("SET_DMA0_SKIP0") if lines > 1 else 0
    gap = registers.number("SET_DMA0_SKIP1") if planes > 1 else 0
    row_bytes = length + skip
    source = run(registers.number("SET_DMA0_SRC"), length * lines * planes)
    target = registers.number("SET_DMA0_DST")
    written = grid(target, length, (lines, row_bytes), (planes, lines * row_bytes + gap))
    return _transfer(registers, instruction, origin, source, footprint((written,)))


def transfer_u85(registers: Registers, instruction: Instruction, origin: Origin) -> Transfer:
    """Return the transfer of a U85's DMA_START; with indices, any row up to the greatest counts."""
    ends = [_end(registers, end) for end in ("SRC", "DST")]
    indices = list(_indices(registers))
    return _transfer(registers, instruction, origin, ends[0], ends[1], *indices)


def _counts(registers: Registers) -> tuple[int, int]:
    mode = registers.choice("SET_DMA0_SRC_REGION", "stride_mode")
    lines = registers.number("SET_DMA0_SIZE0") if mode != "D1" else 1
    return lines, registers.number("SET_DMA0_SIZE1") if mode == "D3" else 1


def _end(registers: Registers, end: str) -> Footprint:
    mode = registers.choice("SET_DMA0_SRC_REGION", "stride_mode")
    lines, planes = _counts(registers)
    named = registers.choice(f"SET_DMA0_{end}_REGION", "idx_mode") == "ENABLED"
    if named:
        lines = registers.number("SET_DMA0_IDX_MAX") + 1
    row_bytes = registers.number(f"SET_DMA0_{end}_STRIDE0") if named or mode != "D1" else 0
    plane = registers.number(f"SET_DMA0_{end}_STRIDE1") if mode == "D3" else 0
    start, length = registers.number(f"SET_DMA0_{end}"), registers.number("SET_DMA0_LEN")
    return footprint((grid(start, length, (lines, row_bytes), (planes, plane)),))


def _indices(registers: Registers) -> Iterator[Access]:
    modes = [registers.choice(f"SET_DMA0_{end}_REGION", "idx_mode") for end in ("SRC", "DST")]
    if "ENABLED" not in modes:
        return
    lines, planes = _counts(registers)
    row_bytes = INDEX_BYTES * lines
    skip = registers.number("SET_DMA0_IDX_SKIP1") if planes > 1 else 0
    read = grid(registers.number("SET_DMA0_IDX"), row_bytes, (planes, row_bytes + skip))
    yield Access("indices", registers.region("SET_DMA0_IDX_REGION"), footprint((read,)))


def _transfer(
    registers: Registers,
    instruction: Instruction,
    origin: Origin,
    source: Footprint,
    destination: Footprint,
    *indices: Access,
) -> Transfer:
    mode = registers.choice("SET_DMA0_SRC_REGION", "stride_mode")
    single = mode == "D1" and not indices and bool(source)
    return Transfer(
        name=instruction.name,
        origin=origin,
        reads=(Access("source", _place(registers, "SRC"), source), *indices),
        writes=(Access("destination", _place(registers, "DST"), destination),),
        moves=destination.first - source.first if single else None,
    )


def _place(registers: Registers, end: str) -> MemoryBlock:
    name = f"SET_DMA0_{end}_REGION"
    internal = registers.choice(name, "region_mode") == "INTERNAL"
    return INTERNAL if internal else registers.region(name)
