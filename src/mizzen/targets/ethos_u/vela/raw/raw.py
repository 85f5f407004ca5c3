"""Vela's raw output: one compiled NPU program as a NumPy archive (`.npz`).

An archive has the driver payload, the read-only data, and the place of every input, output and
variable in the regions. It knows element sizes, but neither types nor names, and pads shapes; those
that Mizzen writes say all three, under keys that other readers ignore.

Ref: Vela 5.2, `rawdata_writer.py` (keys).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from mizzen.diagnostics import fail
from mizzen.targets.ethos_u.machine import driver
from mizzen.targets.ethos_u.machine.base_pointers import (
    require_memory,
    require_region,
    with_regions_of,
)
from mizzen.targets.ethos_u.machine.program import Program, RegionIndex, TensorAddress
from mizzen.targets.ethos_u.vela.raw.archive import Archive, Entry, open_archive, pack_archive

MAX_REGION_BYTES = 1 << 32
"""Most bytes of a region: what U55 can address, and more than any system around an NPU has."""

RANK = 6
"""Dimensions that shapes are padded to with leading ones, as Vela does."""


class _Kind(Enum):
    """What a tensor of the interface is; the value starts the archive's keys."""

    INPUT = "input"
    OUTPUT = "output"
    VARIABLE = "variable"


@dataclass(frozen=True, slots=True)
class RawQuantization:
    """Scales and zero points of a tensor: one of each, or one for each channel."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RawModel:
    """A program and the quantisation of its tensors, in the order of the program's; or None."""

    program: Program
    inputs: tuple[RawQuantization | None, ...]
    outputs: tuple[RawQuantization | None, ...]


def read(data: bytes, name: str) -> RawModel:
    """Read an archive. `name` becomes the program's name and is what diagnostics call the file.

    Shapes have the rank that the archive gives them. Where it names no types, integers are signed,
    but for bytes with a zero point over 127. E150 to E155 say what is wrong with the archive, E520
    to E525 with the payload in it, E540 and E541 with its memory.
    """
    archive = open_archive(data, name)
    payload = driver.parse(archive.data("cmd_data"))
    quantization = {kind: _quantization(archive, kind) for kind in _Kind}
    placements = {kind: _placements(archive, kind, quantization[kind]) for kind in _Kind}
    every = [place for rows in placements.values() for place in rows]
    program = Program(
        words=payload.words,
        hardware=payload.hardware,
        region_bytes=with_regions_of(every, _region_bytes(archive)),
        constants=_constants(archive),
        inputs=(*placements[_Kind.INPUT], *placements[_Kind.VARIABLE]),
        outputs=tuple(placements[_Kind.OUTPUT]),
        name=name,
        form=payload.form,
    )
    require_memory(program)
    inputs = (*quantization[_Kind.INPUT], *quantization[_Kind.VARIABLE])
    return RawModel(program, inputs, tuple(quantization[_Kind.OUTPUT]))


def _region_bytes(archive: Archive) -> dict[int, int]:
    sizes = {require_region(archive.integer("weight_region")): archive.data("weight_data").nbytes}
    for prefix in ("scratch", "scratch_fast"):
        region, size = archive.integer(f"{prefix}_region"), archive.integer(f"{prefix}_size")
        if not 0 <= size <= MAX_REGION_BYTES:
            message = f"{prefix}_size must be in 0..{MAX_REGION_BYTES} bytes, not {size}"
            raise archive.error("E154", message)
        if size:
            sizes[require_region(region)] = max(size, sizes.get(region, 0))
    return sizes


def _constants(archive: Archive) -> dict[int, npt.NDArray[np.uint8]]:
    data = archive.data("weight_data")
    return {archive.integer("weight_region"): data} if data.size else {}


def _count(archive: Archive, kind: _Kind) -> int:
    """Return how many tensors of a kind there are. Vela 4.0 and 4.1 say nothing of variables."""
    key = f"{kind.value}_offset"
    return 0 if _is_left_out(archive, kind, key) else archive.integers(key).size


def _is_left_out(archive: Archive, kind: _Kind, key: str) -> bool:
    return kind is _Kind.VARIABLE and key not in archive


def _column(archive: Archive, kind: _Kind, part: str) -> list[int]:
    """Return one integer for each tensor of a kind."""
    key, count = f"{kind.value}_{part}", _count(archive, kind)
    if not count and _is_left_out(archive, kind, key):
        return []
    values = archive.integers(key)
    if values.size != count:
        raise archive.error("E153", f"{key} must have {count} entries, not {values.size}")
    return values.reshape(-1).tolist()


def _placements(
    archive: Archive, kind: _Kind, quantization: Sequence[RawQuantization | None]
) -> list[TensorAddress]:
    rows = zip(
        _names(archive, kind),
        _shapes(archive, kind),
        _dtypes(archive, kind, quantization),
        _column(archive, kind, "region"),
        _column(archive, kind, "offset"),
        strict=True,
    )
    variable = kind is _Kind.VARIABLE
    return [TensorAddress(*row, variable=variable) for row in rows]


def _names(archive: Archive, kind: _Kind) -> list[str]:
    key, count = f"{kind.value}_name", _count(archive, kind)
    if key not in archive:
        return [f"{kind.value}_{index}" for index in range(count)]
    return _texts(archive, key, count)


def _texts(archive: Archive, key: str, count: int) -> list[str]:
    texts = archive.texts(key)
    if len(texts) != count:
        raise archive.error("E153", f"{key} must have {count} entries, not {len(texts)}")
    return texts


def _shapes(archive: Archive, kind: _Kind) -> list[tuple[int, ...]]:
    """Return each tensor's shape in elements, checked to be positive and to fit in a region."""
    key, count = f"{kind.value}_shape", _count(archive, kind)
    if not count:
        return []
    table = archive.integers(key)
    if table.ndim != 2 or len(table) != count:
        message = f"{key} must be a table of {count} shapes, not of shape {list(table.shape)}"
        raise archive.error("E153", message)
    rank_key = f"{kind.value}_rank"
    ranks = _column(archive, kind, "rank") if rank_key in archive else [table.shape[1]] * count
    shapes: list[tuple[int, ...]] = []
    for row, rank, size in zip(table, ranks, _column(archive, kind, "elem_size"), strict=True):
        shape = tuple(row.tolist())
        if min(shape, default=0) < 1 or math.prod(shape) * size > MAX_REGION_BYTES:
            message = f"{key} must be positive and fit in a region, not {list(shape)}"
            raise archive.error("E154", message)
        if not 0 <= rank <= len(shape) or any(extent > 1 for extent in shape[: -rank or None]):
            raise archive.error("E153", f"{rank_key} must fit {list(shape)}, not be {rank}")
        shapes.append(shape[len(shape) - rank :])
    return shapes


def _dtypes(
    archive: Archive, kind: _Kind, quantization: Sequence[RawQuantization | None]
) -> list[np.dtype[np.generic]]:
    sizes = _column(archive, kind, "elem_size")
    for size in sizes:
        if size not in (1, 2, 4, 8):
            message = f"{kind.value}_elem_size must be 1, 2, 4 or 8 bytes, not {size}"
            raise archive.error("E154", message)
    key = f"{kind.value}_dtype"
    if key not in archive:
        pairs = zip(sizes, quantization, strict=True)
        return [np.dtype(f"{'u' if _is_unsigned(*pair) else 'i'}{pair[0]}") for pair in pairs]
    types = _texts(archive, key, len(sizes))
    for size, text in zip(sizes, types, strict=True):
        if not re.fullmatch(rf"[iuf]{size}|b1", text):
            raise archive.error("E154", f"{key} must be a type of {size} bytes, not {text!r}")
    return [np.dtype(text) for text in types]


def _is_unsigned(size: int, quantization: RawQuantization | None) -> bool:
    if size != 1 or quantization is None:
        return False
    return any(zero_point > np.iinfo(np.int8).max for zero_point in quantization.zero_points)


def _quantization(archive: Archive, kind: _Kind) -> list[RawQuantization | None]:
    key, count = f"{kind.value}_quantization", _count(archive, kind)
    entries = archive.entries(key) if key in archive else []
    if not entries:
        return [None] * count
    if len(entries) != count:
        raise archive.error("E153", f"{key} must have {count} entries, not {len(entries)}")
    return [_from_entry(archive, key, entry) for entry in entries]


def _from_entry(archive: Archive, key: str, entry: Entry) -> RawQuantization | None:
    scale, zero_point = entry.get("scale"), entry.get("zero_point")
    if not isinstance(scale, np.ndarray) or not isinstance(zero_point, np.ndarray):
        raise archive.error("E155", f"{key} must have a scale and a zero point in each entry")
    if scale.dtype.kind != "f" or zero_point.dtype.kind != "i":
        raise archive.error("E155", f"{key} must have real scales and integer zero points")
    if scale.size != zero_point.size:
        raise archive.error("E155", f"{key} must have as many zero points as scales")
    if not scale.size:
        return None
    scales = tuple(float(value) for value in scale.tolist())
    return RawQuantization(scales, tuple(int(value) for value in zero_point.tolist()))


def write(model: RawModel) -> bytes:
    """Write an archive that Vela's other readers and `read` understand.

    E156 if the program's memory has a form that the format cannot say: constants in two regions, or
    regions other than those of Vela.
    """
    program = model.program
    region, data = _only_constants(program)
    real = [index for index, item in enumerate(program.inputs) if not item.variable]
    state = [index for index, item in enumerate(program.inputs) if item.variable]
    arrays: dict[str, npt.ArrayLike] = {
        "cmd_data": np.frombuffer(driver.build(program.words, program.hardware), np.uint8),
        "weight_data": data,
        "weight_region": region,
        **_scratch(program, "scratch", RegionIndex.SCRATCH),
        **_scratch(program, "scratch_fast", RegionIndex.SCRATCH_FAST),
        **_columns(_Kind.INPUT, [program.inputs[index] for index in real]),
        **_columns(_Kind.OUTPUT, program.outputs),
        **_columns(_Kind.VARIABLE, [program.inputs[index] for index in state]),
        "input_quantization": _entries([model.inputs[index] for index in real]),
        "output_quantization": _entries(model.outputs),
        "variable_quantization": _entries([model.inputs[index] for index in state]),
    }
    return pack_archive(arrays)


def _only_constants(program: Program) -> tuple[int, npt.NDArray[np.uint8]]:
    spare = set(program.region_bytes) - set(RegionIndex) - set(program.constants)
    if len(program.constants) > 1 or spare:
        regions = sorted(program.region_bytes)
        message = "a raw archive must have constants in one region and at most two others, not"
        raise fail("E156", f"{message} regions {regions}", rule="Vela, rawdata_writer.py")
    none = (int(RegionIndex.READ_ONLY), np.zeros(0, np.uint8))
    return next(iter(program.constants.items()), none)


def _scratch(program: Program, prefix: str, region: RegionIndex) -> dict[str, npt.ArrayLike]:
    size = program.region_bytes.get(region, 0)
    return {
        f"{prefix}_shape": [size],
        f"{prefix}_region": int(region) if size else 0,
        f"{prefix}_size": size,
    }


def _columns(kind: _Kind, placements: Sequence[TensorAddress]) -> dict[str, npt.ArrayLike]:
    rank = max([RANK, *(len(item.shape) for item in placements)])
    columns: dict[str, npt.ArrayLike] = {
        "shape": [(1,) * (rank - len(item.shape)) + item.shape for item in placements],
        "elem_size": [item.dtype.itemsize for item in placements],
        "region": [item.region for item in placements],
        "offset": [item.offset for item in placements],
        "rank": [len(item.shape) for item in placements],
        "name": [item.name for item in placements],
        "dtype": [f"{item.dtype.kind}{item.dtype.itemsize}" for item in placements],
    }
    if not placements:
        del columns["name"], columns["dtype"]
    return {f"{kind.value}_{part}": column for part, column in columns.items()}


def _entries(quantization: Sequence[RawQuantization | None]) -> npt.NDArray[np.object_]:
    entries = np.empty(len(quantization), dtype=object)
    for index, item in enumerate(quantization):
        count = 0 if item is None else len(item.scales)
        entries[index] = {
            "quant_type": ("none", "per_tensor")[count] if count < 2 else "per_channel",
            "scale": np.array([] if item is None else item.scales, np.float32),
            "zero_point": np.array([] if item is None else item.zero_points, np.int32),
        }
    return entries
