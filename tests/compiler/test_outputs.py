"""Everything that a network may give: constants, inputs, one number, nothing, the same twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import mizzen
from mizzen.conformance.oracles import litert
from mizzen.frontends.tflite import read
from mizzen.package.tflite.builder import NetworkBuilder

Array = npt.NDArray[Any]

NUMBERS = np.random.default_rng(6)
ETHOS_U = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
ACCELERATORS = (*ETHOS_U, "ethos-n78-4tops-4ple")
TYPES = (np.int8, np.uint8, np.int16, np.int32, np.int64, np.float32, np.float16, np.bool_)


class Net(NetworkBuilder):
    """A convolution `y` of the input `x`, and what else it may give."""

    def __init__(self) -> None:
        super().__init__("outputs")
        self.x = self.tensor("x", (1, 8, 8, 3), np.int8, 0.05, 3)
        self.w = self.constant("w", int8(4, 3, 3, 3), 0.01)
        b = self.constant("b", np.arange(4, dtype=np.int32), 0.0005)
        self.y = self.tensor("y", (1, 8, 8, 4), np.int8, 0.2, 2)
        options = ("Conv2DOptions", {"padding": 0, "stride_w": 1, "stride_h": 1})
        self.operator("CONV_2D", [self.x, self.w, b], [self.y], options)

    def anchors(self, *shape: int, dtype: npt.DTypeLike = np.int8) -> int:
        """Add a constant that no operator takes."""
        scale = 0.1 if np.dtype(dtype).itemsize == 1 and dtype != np.bool_ else None
        values = NUMBERS.integers(0, 99, shape).astype(dtype)
        return self.constant(f"anchors_{np.dtype(dtype)}_{len(shape)}", values, scale)

    def vector(self, *values: int) -> int:
        return self.constant(f"v{NUMBERS.integers(1 << 40)}", np.array(values, np.int32))


def int8(*shape: int) -> Array:
    return NUMBERS.integers(-90, 90, shape).astype(np.int8)


def _types(net: Net) -> bytes:
    return net.finish([net.x], [net.y, *(net.anchors(2, 3, dtype=row) for row in TYPES)])


def _first_and_twice(net: Net) -> bytes:
    anchors = net.anchors(5)
    return net.finish([net.x], [anchors, net.y, anchors])


def _taken_as_well(net: Net) -> bytes:
    anchors = net.anchors(1, 8, 8, 4)
    z = net.tensor("z", (1, 8, 8, 4), np.int8, 0.2, 1)
    net.operator("ADD", [net.y, anchors], [z], ("AddOptions", {}))
    return net.finish([net.x], [z, anchors])


def _weights(net: Net) -> bytes:
    return net.finish([net.x], [net.y, net.w])


def _of_rank_0(net: Net) -> bytes:
    return net.finish([net.x], [net.y, net.anchors()])


def _only_a_constant(net: Net) -> bytes:
    return net.finish([net.x], [net.anchors(2, 2)])


def _folded(net: Net) -> bytes:
    turned = net.tensor("turned", (3, 2), np.int8, 0.1)
    net.operator("TRANSPOSE", [net.anchors(2, 3), net.vector(1, 0)], [turned])
    return net.finish([net.x], [net.y, turned])


def _input(net: Net) -> bytes:
    return net.finish([net.x], [net.x, net.y])


def _only_the_input(net: Net) -> bytes:
    return net.finish([net.x], [net.x])


def _unused_input(net: Net) -> bytes:
    other = net.tensor("other", (1, 4), np.int8, 0.5)
    return net.finish([net.x, other], [other, net.y])


def _twice(net: Net) -> bytes:
    return net.finish([net.x], [net.y, net.y])


def _one_number(net: Net) -> bytes:
    z = net.tensor("z", (1, 1, 1, 1), np.int8, 0.2, 2)
    net.operator("SLICE", [net.y, net.vector(0, 3, 2, 1), net.vector(1, 1, 1, 1)], [z])
    return net.finish([net.x], [z, net.y])


def _a_number_of_rank_0(net: Net) -> bytes:
    z = net.tensor("z", (1, 1, 1, 1), np.int8, 0.2, 2)
    net.operator("SLICE", [net.y, net.vector(0, 3, 2, 1), net.vector(1, 1, 1, 1)], [z])
    scalar = net.tensor("scalar", (), np.int8, 0.2, 2)
    options = ("ReshapeOptions", {"new_shape": np.zeros(0, np.int32)})
    net.operator("RESHAPE", [z, net.vector()], [scalar], options)
    return net.finish([net.x], [scalar])


def _nothing_at_all(net: Net) -> bytes:
    return net.finish([net.x], [net.y, net.tensor("none", (0, 4), np.int8, 0.1)])


def _nothing_computed(net: Net) -> bytes:
    none = net.tensor("none", (1, 0, 8, 4), np.int8, 0.2, 2)
    net.operator("SLICE", [net.y, net.vector(0, 0, 0, 0), net.vector(1, 0, 8, 4)], [none])
    return net.finish([net.x], [none, net.y])


def _nothing_taken(net: Net) -> bytes:
    z = net.tensor("z", (1, 8, 8, 4), np.int8, 0.2, 2)
    none = net.constant("none", np.zeros((1, 0, 8, 4), np.int8), 0.2, 2)
    net.operator("CONCATENATION", [net.y, none], [z], ("ConcatenationOptions", {"axis": 1}))
    return net.finish([net.x], [z])


GIVEN: dict[str, Callable[[Net], bytes]] = {
    "constants of every type": _types,
    "a constant first, and twice": _first_and_twice,
    "a constant that is taken as well": _taken_as_well,
    "weights": _weights,
    "a constant of rank 0": _of_rank_0,
    "a constant alone": _only_a_constant,
    "what is computed of constants": _folded,
    "an input": _input,
    "an input alone": _only_the_input,
    "an input that nothing takes": _unused_input,
    "a result twice": _twice,
    "one number": _one_number,
    "a number of rank 0": _a_number_of_rank_0,
    "a tensor without elements": _nothing_at_all,
    "one that is computed": _nothing_computed,
    "with one that is taken": _nothing_taken,
}


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", GIVEN)
def test_given_as_litert_gives_it(name: str, accelerator: str) -> None:
    data = GIVEN[name](Net())
    main = read(data, "net").main
    inputs = [
        NUMBERS.integers(-128, 128, (2, *row.shape)).astype(np.int8)
        for row in main.present(main.inputs)
    ]
    expected = litert(data, inputs)
    artifact = mizzen.compile(data, accelerator)
    found = artifact.run(*(row[:, 0] for row in inputs))
    arrays = found if isinstance(found, tuple) else (found,)
    furthest = 0 if accelerator in ETHOS_U else 1
    assert len(arrays) == len(expected)
    for index, ours, theirs in zip(main.outputs, arrays, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.size == theirs.size, main.tensors[index].name
        far = np.abs(ours.reshape(theirs.shape).astype(float) - theirs.astype(float))
        assert far.max(initial=0) <= furthest
