"""Command streams without a network around them, as artifacts: Vela's raw archives of them.

A stream is the words that an NPU executes, with or without the head of a driver's payload. What it
is about lies in regions, whose contents or sizes are given beside it. Mesa's compiler has both in
one file, and writes them apart where it is debugged.

Region 0, and contents that the stream never writes, are constants. A region that it writes is an
input, and after it an output, byte by byte. Of the tensors that Mesa's file names, those that the
stream reads before it writes to them are inputs, and all others outputs, also where it does not
write them: `check` says so.

Ref: Mesa, src/gallium/drivers/ethosu/ethosu_device.c and ethosu_ml.c (serialise and dumps).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import MizzenError, fail
from mizzen.targets.ethos_u.judge.hazards import Extent, extents, find_hazards
from mizzen.targets.ethos_u.judge.hazards.findings import BadAccess, Fault, Span
from mizzen.targets.ethos_u.judge.hazards.maps import Kind
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.base_pointers import require_region
from mizzen.targets.ethos_u.machine.config import ACCELERATORS
from mizzen.targets.ethos_u.machine.program import (
    BY_CONFIG_WORD,
    HardwareId,
    Program,
    RegionIndex,
    TensorAddress,
)
from mizzen.targets.ethos_u.vela.raw import raw

Contents = bytes | int
"""What a region starts with, or its size in bytes."""

Words = npt.NDArray[np.uint32]
Ranges = Sequence[tuple[int, int]]
"""First byte, and one past the last, of runs of bytes."""

_MESA_HEAD = struct.Struct("<4Q")
"""Bytes of commands, of coefficients, of memory for tensors, and of their table."""
_MESA_TENSOR = struct.Struct("<3I")
"""Index, offset, size."""
_COEFFICIENTS, _TENSORS = 0, 1
"""Regions of Mesa's streams; 2 is SRAM."""

_LARGEST_SCRATCH_BYTES = 1 << 32
_BYTE = np.dtype(np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """A stream and its memory; `tensors` are in region 1, where they are known."""

    words: Words
    hardware: HardwareId | None
    regions: dict[int, Contents]
    tensors: tuple[TensorAddress, ...] = ()


def is_mesa(data: bytes) -> bool:
    """Whether a file is what Mesa's compiler for Ethos-U serialises: its sizes add up."""
    if len(data) < _MESA_HEAD.size:
        return False
    commands, coefficients, _, tensors = _MESA_HEAD.unpack_from(data)
    return (
        commands > 0
        and commands % 4 == tensors % _MESA_TENSOR.size == 0
        and _MESA_HEAD.size + commands + coefficients + tensors == len(data)
    )


def archive_of(
    data: bytes, name: str, accelerator: str | None, regions: Mapping[int, Contents]
) -> bytes:
    """Return Vela's raw archive of a stream.

    E699 without the NPU that it is for, E113 with another than it names; E520 to E526 for a damaged
    head, E540 for a region that there is not, E156 for memory that the archive cannot say.
    """
    parts = _mesa(data) if is_mesa(data) else _plain(data, name)
    for region in regions:
        require_region(region)
    hardware = _hardware(parts.hardware, name, accelerator)
    held = {**parts.regions, **regions}
    program = Program(
        words=parts.words,
        hardware=hardware,
        region_bytes={key: _size(value) for key, value in held.items()},
        constants={},
        inputs=tuple(_whole(region, value) for region, value in held.items()
                     if not parts.tensors or region != _TENSORS),
        outputs=(),
        name=name,
    )  # fmt: skip
    placed = _placed(program, parts, held, _touched(program))
    none = (None,) * len(placed.inputs), (None,) * len(placed.outputs)
    return raw.write(raw.RawModel(placed, *none))


def archive_of_payload(
    data: bytes,
    name: str,
    accelerator: str | None,
    constants: tuple[str, bytes | None] | None,
    regions: Mapping[int, Contents],
) -> bytes:
    """Return Vela's raw archive of a driver's payload of which nothing else may be known.

    constants  what those of region 0 are called, and the bytes where there are some; None where
               nothing is known of them
    regions    what other regions start with, or their sizes

    A region that nobody gives is as long as the stream needs. What it reads there may be an input.
    Raises as `archive_of`; E185 and E186 for constants that are missing or too short.
    """
    payload = driver.parse(data)
    reach = extents(Program(payload.words, payload.hardware, {}, {}, (), (), name))
    held: dict[int, Contents] = {
        region: bytes(extent.size_bytes)
        for region, extent in reach.items()
        if region != RegionIndex.SCRATCH_FAST
    }
    first = reach.get(int(RegionIndex.READ_ONLY), Extent())
    given = {**held, **regions}
    if first.read and not first.written:
        size = regions.get(int(RegionIndex.READ_ONLY))
        given[int(RegionIndex.READ_ONLY)] = (
            _long_enough(constants, first.read, name) if size is None
            else bytes(size) if isinstance(size, int) else size
        )  # fmt: skip
    return archive_of(data, name, accelerator, given)


def _long_enough(constants: tuple[str, bytes | None] | None, needed: int, name: str) -> bytes:
    called, held = constants or ("", None)
    what = f"{name}: the constants of the command stream, {needed} bytes of region 0, must be"
    give = f"--region 0=FILE; to list commands its size is enough: --region 0={needed}"
    if held is None:
        came = f"no array {called} is here" if called else "nothing here says where they are"
        raise fail("E185", f"{what} given, and {came}", help=give)
    if len(held) < needed:
        raise fail("E186", f"{what} those of {called}, which has {len(held)} bytes", help=give)
    return held


def _plain(data: bytes, name: str) -> _Parts:
    if data[:4] in driver.HEADS:
        payload = driver.parse(data)
        return _Parts(payload.words, payload.hardware, {})
    if len(data) % 4 or not data:
        raise fail(
            "E699",
            f"{name} must be a stream of words of 4 bytes, and has {len(data)} bytes",
            help="give the commands alone, or Mesa's file as it serialised it",
        )
    return _Parts(np.frombuffer(data, np.dtype("<u4")), None, {})


def _mesa(data: bytes) -> _Parts:
    commands, coefficients, memory, table = _MESA_HEAD.unpack_from(data)
    at = _MESA_HEAD.size
    tensors = tuple(
        TensorAddress(f"tensor_{index}", (size,), _BYTE, _TENSORS, offset)
        for index, offset, size in _MESA_TENSOR.iter_unpack(data[at : at + table])
        if size and offset + size <= memory
    )
    start = at + table
    words = np.frombuffer(data, np.dtype("<u4"), commands // 4, start)
    constants = data[start + commands : start + commands + coefficients]
    regions: dict[int, Contents] = {_TENSORS: memory}
    if constants:
        regions[_COEFFICIENTS] = constants
    return _Parts(words, None, regions, tensors)


def _hardware(named: HardwareId | None, name: str, accelerator: str | None) -> HardwareId:
    known = ACCELERATORS.get(accelerator or "")
    if named is not None:
        made_for = BY_CONFIG_WORD.get(named.config_word)
        if known is not None and made_for is not None and made_for is not known:
            raise fail(
                "E113",
                f"{name} must be for {accelerator}, and its head says {made_for.name}",
                help="leave --accelerator-config out, or compile the network for it",
            )
        return named
    if known is None:
        raise fail(
            "E699",
            f"{name} does not say which NPU it is for, and one must be named: "
            f"{', '.join(ACCELERATORS)}",
            help="--accelerator-config NAME",
        )
    return HardwareId(known.config_word, 0)


def _size(value: Contents) -> int:
    return value if isinstance(value, int) else len(value)


def _whole(region: int, value: Contents) -> TensorAddress:
    return TensorAddress(f"region_{region}", (max(1, _size(value)),), _BYTE, region, 0)


@dataclass(frozen=True)
class _Touched:
    """What a stream writes, and what it reads that nothing wrote or gave, by region."""

    written: Mapping[int, Ranges]
    read: Sequence[Span]


def _touched(program: Program) -> _Touched:
    """Return what a stream touches; nothing of one that is damaged: checks tell."""
    sizes = dict.fromkeys(range(8), _LARGEST_SCRATCH_BYTES)
    try:
        report = find_hazards(replace(program, region_bytes=sizes))
    except MizzenError:
        return _Touched({}, ())
    unwritten = [
        finding.span
        for finding in report.findings
        if isinstance(finding, BadAccess) and finding.fault is Fault.NEVER_WRITTEN
    ]
    return _Touched(report.own, unwritten)


def _placed(
    program: Program,
    parts: _Parts,
    held: Mapping[int, Contents],
    touched: _Touched,
) -> Program:
    """Return the program with constants, inputs and outputs, and the memory that it stages in."""
    written = touched.written
    given = {region: value for region, value in held.items() if isinstance(value, bytes)}
    only_read = sorted(region for region in given if region not in written or not region)
    constants = {
        region: np.frombuffer(given[region], np.uint8) for region in only_read[:1]
    }  # an archive has one such region: others are inputs
    inputs = [_whole(region, given[region]) for region in given if region not in constants]
    outputs = [_whole(region, given[region]) for region in given if region in written]
    named = [each for each in parts.tensors if each.region not in given]
    taken = {each.name for each in named if any(_meets(span, each) for span in touched.read)}
    fast = int(RegionIndex.SCRATCH_FAST)
    staged = max((end for _, end in written.get(fast, ())), default=0)
    sizes = dict(program.region_bytes)
    if staged and fast not in sizes:
        sizes[fast] = staged
    return replace(
        program,
        region_bytes=sizes,
        constants=constants,
        inputs=(*inputs, *(each for each in named if each.name in taken)),
        outputs=(*outputs, *(each for each in named if each.name not in taken)),
    )


def _meets(span: Span, tensor: TensorAddress) -> bool:
    here = span.place.kind is Kind.REGION and span.place.index == tensor.region
    return here and span.first < tensor.offset + tensor.size_bytes and tensor.offset <= span.last
