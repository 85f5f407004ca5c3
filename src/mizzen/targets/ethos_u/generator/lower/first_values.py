"""Variables that hold other numbers than zero before the first run.

A runtime sets variable tensors to the number for zero. So a variable's first numbers are a
constant, which is added to what is read in the first run, and only then: one more variable of one
byte says whether there was a run. What is never written is the constant.

Ref: TFLite Micro, micro_interpreter_graph.cc, ResetVariableTensors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mizzen.graph import Array, DType, Operation, TensorType, Value
from mizzen.targets.ethos_u.generator.lower.carrying import ONE, each_with
from mizzen.targets.ethos_u.generator.lower.context import Emitter, Node, type_of
from mizzen.targets.ethos_u.generator.lower.finish import plain
from mizzen.targets.ethos_u.generator.lower.planning import NOWHERE
from mizzen.targets.ethos_u.generator.lower.refusing import need
from mizzen.targets.ethos_u.generator.lower.views import View
from mizzen.targets.ethos_u.generator.operations import Elementwise, Map, Scalar
from mizzen.targets.ethos_u.machine.commands_values import ElementwiseMode, RoundMode


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A variable: its name and type, and what it holds before the first run.

    initial  as the graph has it; None for nothing
    """

    name: str
    type: TensorType
    initial: Array | None


FLAG = State("has_run", TensorType((1,), DType.INT8), np.zeros(1, np.int8))
"""1 after the first run."""


STARTED = (DType.INT8, DType.INT16, DType.INT32)
"""Types of variables that can start with any numbers."""


def number_for_zero(type: TensorType) -> int:
    """Return the number that a runtime sets a variable tensor to."""
    return 0 if type.quantization is None else type.quantization.zero_point


def started_at_zero(state: State) -> State:
    """Return a variable that holds the number for zero at first: itself if it does."""
    zero = number_for_zero(state.type)
    if state.initial is None or bool((state.initial == zero).all()):
        return state
    return replace(state, initial=np.full_like(state.initial, zero))


@dataclass(frozen=True, slots=True, eq=False)
class First:
    """What a variable holds before the first run, and whether it is ever written."""

    numbers: Array
    is_written: bool

    def node(self, value: Value, type: TensorType, operations: tuple[Operation, ...]) -> Node:
        """Return the node of a value that is what the variable holds."""
        zero = number_for_zero(type)
        need(type.dtype in STARTED, f"its variable is {type.dtype.value}")
        need(not zero or type.dtype is DType.INT8, "its variable has a zero point")
        dtype = type_of(type.dtype)
        numbers = self.numbers.astype(dtype)

        def constant(emitter: Emitter) -> None:
            emitter.views[value] = emitter.constant(numbers, value.name)

        def chosen(emitter: Emitter) -> None:
            held = emitter.views[value]
            _chosen(emitter, type.dtype, numbers, held, emitter.target(value), zero)

        emit = chosen if self.is_written else constant
        return Node(value, (), operations, emit)


def _chosen(
    emitter: Emitter, dtype: DType, numbers: Array, held: View, target: View, zero: int
) -> None:
    """Add what writes what a variable holds, or in the first run its first numbers."""
    flag = emitter.has_run
    assert flag is not None
    array = emitter.dtype(held)
    missing = emitter.tensor("is_first", (1,), array)
    one = Scalar(1, emitter.dtype(flag))
    _add(emitter, ElementwiseMode.SUB, dtype, (flag, one, missing), (0, 0), turned=True)
    added = emitter.scratch(held, "first")
    first = emitter.constant(numbers, "first")
    _add(emitter, ElementwiseMode.MUL, dtype, (first, missing, added), (zero, 0))
    _add(emitter, ElementwiseMode.ADD, dtype, (held, added, target), (zero, zero))


def _add(
    emitter: Emitter,
    mode: ElementwiseMode,
    dtype: DType,
    views: tuple[View, View | Scalar, View],
    zeros: tuple[int, int],
    *,
    turned: bool = False,
) -> None:
    summed = ONE if mode is not ElementwiseMode.MUL else None
    for ifm, ifm2, ofm in each_with(emitter, *views):
        emitter.operations.append(
            Elementwise(
                NOWHERE,
                mode,
                _zeroed(ifm, zeros[0]),
                ifm2 if isinstance(ifm2, Scalar) else _zeroed(ifm2, zeros[1]),
                _zeroed(ofm, zeros[0]),
                plain(dtype).activation,
                reversed=turned,
                scale=ONE,
                scale_a=summed,
                scale_b=summed,
                rounding=RoundMode.NATURAL,
            )
        )


def _zeroed(row: Map, zero: int) -> Map:
    return Map(row.view, row.dtype, zero)
