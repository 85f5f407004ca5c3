"""The file of a program that runs partly on the NPU and partly in PyTorch or ONNX Runtime.

A ZIP archive: ``plan.json`` says which tensors there are and which steps, in order; every NPU
region is a compiled TFLite network, every part of PyTorch's an exported program, every part of
ONNX Runtime's an ONNX network.
"""

from __future__ import annotations

import io
import json
import math
import operator
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mizzen.archives import NUMBERS, ArchiveError, array_of, member_names, unpacked
from mizzen.artifact.archive_checks import require_fit
from mizzen.artifact.execution import Contents
from mizzen.artifact.host_steps import (
    DequantizeStep,
    NarrowStep,
    QuantizeStep,
    TorchStep,
    WidenStep,
)
from mizzen.artifact.interface import Array, Carried, Origins, TensorInfo
from mizzen.artifact.onnx_parts import require_plain
from mizzen.artifact.onnx_steps import DivideStep, OrtStep, SignStep
from mizzen.artifact.region_step import RegionStep, edge_of
from mizzen.artifact.steps import NpuStep, Step, is_npu, npu_step, read_network
from mizzen.diagnostics import MizzenError, Origin, fail
from mizzen.frontends.tflite import Quantization

PLAN = "plan.json"
ARRAYS = "arrays.npz"
VERSION = 1
_NPU, _TFLITE = "npu", ".tflite"
"""Around the number of a step, in the name of its network's member."""
FIXED_TIME = (1980, 1, 1, 0, 0, 0)
"""Of all members, so that the same network gives the same bytes."""


def is_program(data: bytes) -> bool:
    """Whether a file is such an archive."""
    try:
        return PLAN in member_names(data)
    except ArchiveError:
        return False


def pack(name: str, contents: Contents, networks: Sequence[bytes]) -> bytes:
    """Write a program; `networks` are those of its NPU steps, in order."""
    files: dict[str, bytes] = {}
    steps = [_step_data(index, step, files) for index, step in enumerate(contents.steps)]
    remaining = iter(networks)
    for index, step in enumerate(contents.steps):
        if isinstance(step, NpuStep):
            files[f"{_NPU}{index}{_TFLITE}"] = next(remaining)
    arrays = {f"constant{index}": array for index, array in contents.constants.items()}
    arrays |= {f"state{state.read}": state.initial for state in contents.carried}
    plan = {
        "version": VERSION,
        "name": name,
        "inputs": contents.inputs,
        "outputs": contents.outputs,
        "tensors": {index: _info_data(info) for index, info in contents.infos.items()},
        "steps": steps,
        "constants": sorted(contents.constants),
        "carried": [(state.read, state.write) for state in contents.carried],
    }
    files[PLAN] = json.dumps(plan, indent=1).encode()
    files[ARRAYS] = _packed(arrays)
    return _zipped(files)


def unpack(data: bytes, name: str, origins: Sequence[Origins] = ()) -> Contents:
    """Read a program; `origins` of its NPU operators' streams, in order.

    E115 for a damaged one, E165 without PyTorch and E193 without the package onnx where a step
    needs it, E169 for one that has more than tensors and operators for PyTorch.
    """
    try:
        files = unpacked(data)
        plan = json.loads(files[PLAN])
        arrays = {
            key.removesuffix(".npy"): array_of(held)
            for key, held in unpacked(files[ARRAYS]).items()
        }
        contents = _contents(plan, files, arrays, name, origins)
        require_fit(contents)
    except MizzenError:
        raise
    except Exception as error:  # the plan may say anything in place of what it should
        raise damaged(name, str(error) or type(error).__name__) from None
    return contents


def damaged(name: str, reason: str) -> MizzenError:
    """Return the error of an archive that cannot be read: E115."""
    return fail(
        "E115",
        f"{name} must be an archive that `mizzen compile` wrote: {reason}",
        help="compile the program again",
    )


def npu_networks(files: Mapping[str, bytes]) -> list[bytes]:
    """Return the networks of an archive's NPU steps, in the steps' order."""
    names = [name for name in files if name.startswith(_NPU) and name.endswith(_TFLITE)]
    numbers = {int(name[len(_NPU) : -len(_TFLITE)]): name for name in names}
    return [files[numbers[number]] for number in sorted(numbers)]


def _contents(
    plan: dict[str, Any],
    files: dict[str, bytes],
    arrays: dict[str, Array],
    name: str,
    origins: Sequence[Origins],
) -> Contents:
    if plan["version"] != VERSION:
        raise ValueError(f"it has version {plan['version']}, not {VERSION}")
    known = iter(origins)
    return Contents(
        inputs=_indices(plan["inputs"]),
        outputs=_indices(plan["outputs"]),
        infos={int(index): _info(info) for index, info in plan["tensors"].items()},
        steps=tuple(
            _step(index, step, files, name, known) for index, step in enumerate(plan["steps"])
        ),
        constants={index: arrays[f"constant{index}"] for index in _indices(plan["constants"])},
        carried=tuple(
            Carried(read, write, arrays[f"state{read}"])
            for read, write in map(_indices, plan["carried"])
        ),
    )


def _step_data(index: int, step: Step, files: dict[str, bytes]) -> dict[str, Any]:
    match step:
        case RegionStep():
            shapes = {tensor: step.shapes[tensor] for tensor in (*step.inputs, *step.outputs)}
            return {"kind": "npu", "inputs": step.inputs, "outputs": step.outputs, "shapes": shapes}
        case QuantizeStep():
            numbers = (step.input, step.output, step.scale, step.zero_point, step.low, step.high)
            return {"kind": "quantize", "numbers": numbers, "dtype": step.dtype.str}
        case DivideStep():
            numbers = (step.input, step.output, step.scale, step.zero_point, step.low, step.high)
            return {"kind": "divide", "numbers": numbers, "dtype": step.dtype.str}
        case SignStep():
            return {"kind": "sign", "numbers": (step.input, step.output)}
        case DequantizeStep():
            numbers = (step.input, step.output, step.scale, step.zero_point)
            return {"kind": "dequantize", "numbers": numbers}
        case NarrowStep():
            numbers = (step.input, step.output, step.size, step.counts_back)
            return {"kind": "narrow", "numbers": numbers}
        case WidenStep():
            return {"kind": "widen", "numbers": (step.input, step.output)}
        case TorchStep():
            files[f"torch{index}.pt2"] = step.saved()
            told = {"inputs": step.inputs, "outputs": step.outputs, "operators": step.kinds}
            return {"kind": "torch", **told}
        case OrtStep():
            files[f"onnx{index}.onnx"] = step.model
            told = {"inputs": step.inputs, "outputs": step.outputs, "operators": step.kinds}
            return {"kind": "onnx", **told, "dtypes": [dtype.str for dtype in step.dtypes]}
        case _:
            raise AssertionError(step)


def _step(
    index: int,
    described: dict[str, Any],
    files: dict[str, bytes],
    name: str,
    origins: Iterator[Origins],
) -> Step:
    match described["kind"]:
        case "npu":
            network = read_network(files[f"{_NPU}{index}{_TFLITE}"], name)
            (operator,) = [each for each in network.main.operators if is_npu(each)]
            shapes = {int(tensor): _shape(shape) for tensor, shape in described["shapes"].items()}
            step = npu_step(network, operator, next(origins, dict[int, Origin]()))
            taken = [network.main.tensors[place].shape for place in step.inputs]
            edge = edge_of(network, step)
            tensors = _indices(described["inputs"]), _indices(described["outputs"])
            return RegionStep(step, *tensors, shapes, edge, taken)
        case "quantize" | "divide" as kind:
            source, result, scale, *integers = described["numbers"]
            source, result, zero_point, low, high = _indices((source, result, *integers))
            numbers = source, result, _scale(scale), zero_point, low, high
            dtype = _dtype(described["dtype"])
            return (QuantizeStep if kind == "quantize" else DivideStep)(*numbers, dtype)
        case "sign":
            source, result = _indices(described["numbers"])
            return SignStep(source, result)
        case "dequantize":
            source, result, scale, zero_point = described["numbers"]
            source, result, zero_point = _indices((source, result, zero_point))
            return DequantizeStep(source, result, _scale(scale), zero_point)
        case "narrow":
            source, result, size, counts_back = described["numbers"]
            source, result = _indices((source, result))
            (size,) = (None,) if size is None else _indices((size,))
            return NarrowStep(source, result, size, bool(counts_back))
        case "widen":
            source, result = _indices(described["numbers"])
            return WidenStep(source, result)
        case "torch":
            module = load_torch(files[f"torch{index}.pt2"], name)
            tensors = _indices(described["inputs"]), _indices(described["outputs"])
            return TorchStep(module, *tensors, _texts(described["operators"]))
        case "onnx":
            model = files[f"onnx{index}.onnx"]
            require_plain(model, name)
            tensors = _indices(described["inputs"]), _indices(described["outputs"])
            dtypes = tuple(map(_dtype, described["dtypes"]))
            return OrtStep(model, *tensors, dtypes, _texts(described["operators"]))
        case kind:
            raise ValueError(f"a step is {kind}")


def load_torch(data: bytes, name: str) -> Any:
    """Read a part of PyTorch's. E165 without PyTorch, E164 and E169 as `read_exported`."""
    from mizzen.quantize import register_operators, require_torch

    require_torch()
    from mizzen.frontends.torch.exported_file import has_symbols, read_exported

    register_operators()
    program = read_exported(data, name)
    if has_symbols(program):
        raise ValueError("a part for PyTorch has shapes that are not static")
    return program.module(check_guards=False)


def _indices(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(map(operator.index, values))


def _scale(value: Any) -> float:
    scale = float(value)
    if not 0 < scale < math.inf:
        raise ValueError(f"a scale is {scale}")
    return scale


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"operators are called {list(values)}")
    return tuple(values)


def _shape(extents: Sequence[Any]) -> tuple[int, ...]:
    shape = _indices(extents)
    if any(extent < 0 for extent in shape):
        raise ValueError(f"a tensor has shape {list(shape)}")
    return shape


def _dtype(letters: str) -> np.dtype[Any]:
    dtype = np.dtype(letters)
    if dtype.kind not in NUMBERS:
        raise ValueError(f"a tensor has type {dtype}")
    return dtype


def _info_data(info: TensorInfo) -> dict[str, Any]:
    quantization = info.quantization
    return {
        "name": info.name,
        "shape": info.shape,
        "dtype": info.dtype.str,
        "scale": None if quantization is None else quantization.scale,
        "zero_point": None if quantization is None else quantization.zero_point,
    }


def _info(described: dict[str, Any]) -> TensorInfo:
    scale = described["scale"]
    quantization = None
    if scale is not None:
        zero_point = tuple(map(operator.index, described["zero_point"]))
        quantization = Quantization(tuple(map(float, scale)), zero_point)
    return TensorInfo(
        str(described["name"]), _shape(described["shape"]), _dtype(described["dtype"]), quantization
    )


def _packed(arrays: dict[str, Array]) -> bytes:
    files: dict[str, bytes] = {}
    for key, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        files[f"{key}.npy"] = buffer.getvalue()
    return _zipped(files)


def _zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, data in files.items():
            archive.writestr(zipfile.ZipInfo(entry, FIXED_TIME), data)
    return buffer.getvalue()
