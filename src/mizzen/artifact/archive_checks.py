"""What must hold between the steps of an archive, which says anything: checked before they run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mizzen.artifact.execution import Contents
from mizzen.artifact.host_steps import (
    DequantizeStep,
    NarrowStep,
    QuantizeStep,
    TorchStep,
    WidenStep,
)
from mizzen.artifact.interface import Shape
from mizzen.artifact.onnx_parts import Form, edge_of_network
from mizzen.artifact.onnx_steps import OTHER_SIGN, DivideStep, OrtStep, SignStep, is_convertible
from mizzen.artifact.region_step import RegionStep
from mizzen.artifact.steps import Step


def require_fit(contents: Contents) -> None:
    """Check that each step takes what there is by then. ValueError or KeyError says what is not."""
    known: dict[int, Form] = {}
    for index in contents.inputs:
        known[index] = contents.infos[index].shape, contents.infos[index].dtype
    for index, array in contents.constants.items():
        known[index] = array.shape, array.dtype
    for state in contents.carried:
        known[state.read] = state.initial.shape, state.initial.dtype
    for step in contents.steps:
        _take(step, known)
    for index in contents.outputs:
        info = contents.infos[index]
        _require_same(index, known[index], (info.shape, info.dtype))
    for state in contents.carried:
        _require_same(state.write, known[state.write], (state.initial.shape, state.initial.dtype))


def _take(step: Step, known: dict[int, Form]) -> None:
    """Check what a step takes, and add what it gives."""
    match step:
        case QuantizeStep() | DivideStep():
            known[step.output] = known[step.input][0], step.dtype
        case DequantizeStep():
            known[step.output] = known[step.input][0], np.dtype(np.float32)
        case NarrowStep():
            known[step.output] = known[step.input][0], np.dtype(np.int32)
        case WidenStep():
            known[step.output] = known[step.input][0], np.dtype(np.int64)
        case SignStep():
            shape, dtype = known[step.input]
            known[step.output] = shape, OTHER_SIGN[dtype]
        case RegionStep():
            places = zip(step.inputs, step.program.inputs, strict=True)
            _require_all(
                [(i, (step.shapes[i], _sized(step.shapes[i], p))) for i, p in places], known
            )
            for index, place in zip(step.outputs, step.program.outputs, strict=True):
                known[index] = step.shapes[index], _sized(step.shapes[index], place)
        case TorchStep():
            taken, given = edge_of_module(step.module)
            _require_all(list(zip(step.inputs, taken, strict=True)), known)
            known.update(zip(step.outputs, given, strict=True))
        case OrtStep():
            _take_network(step, known)
        case _:
            raise TypeError(f"a step is {step}")


def _take_network(step: OrtStep, known: dict[int, Form]) -> None:
    taken, given = edge_of_network(step.model)
    for index, (shape, dtype) in zip(step.inputs, taken, strict=True):
        came = known[index]
        _require_convertible(came[1], dtype)
        _require_same(index, came, (shape, came[1]))
    for index, dtype, (shape, own) in zip(step.outputs, step.dtypes, given, strict=True):
        _require_convertible(dtype, own)
        known[index] = shape, dtype


def _require_convertible(came: np.dtype[Any], wanted: np.dtype[Any]) -> None:
    if not is_convertible(came, wanted):
        raise ValueError(f"a tensor is {came}, and {wanted} in the ONNX network that has it")


def _sized(shape: Shape, place: Any) -> np.dtype[Any]:
    """Return the type of an NPU's tensor, whose elements are those of a shape."""
    if math.prod(shape) != math.prod(place.shape):
        raise ValueError(f"a tensor of shape {list(place.shape)} is said to be {list(shape)}")
    return place.dtype


def _require_all(forms: Sequence[tuple[int, Form]], known: dict[int, Form]) -> None:
    for index, form in forms:
        _require_same(index, known[index], form)


def _require_same(index: int, came: Form, wanted: Form) -> None:
    if came != wanted:
        raise ValueError(f"tensor {index} is {came[1]}{list(came[0])}, and {wanted[1]}"
                         f"{list(wanted[0])} where it is used")  # fmt: skip


def edge_of_module(module: Any) -> tuple[list[Form], list[Form]]:
    """Return the forms of the inputs and outputs of a module of PyTorch's."""
    nodes = list(module.graph.nodes)
    taken = [node for node in nodes if node.op == "placeholder"]
    (given,) = (node.args[0] for node in nodes if node.op == "output")
    return [_form(value) for value in taken], [_form(value) for value in given]


def _form(node: Any) -> Form:
    value = node.meta["val"]
    return tuple(value.shape), np.dtype(str(value.dtype).removeprefix("torch."))
