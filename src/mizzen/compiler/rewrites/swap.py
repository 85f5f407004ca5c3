"""Swap H and W: every map lies with its columns as rows, and every window with it.

The MAC array takes blocks that are wider than high, so a narrow map does better with its long axis
across. Weights are transposed when the network is compiled; the input by a TRANSPOSE, as what
comes must have the model's shape.

Conditions: one input; operators that treat H and W alike, or that have a form for swapped ones
(windows, pads, concatenations). A map of more than one position that is flattened must go to a
FULLY_CONNECTED alone, whose weights change their order. Sums have the same terms: exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mizzen.compiler.rewrites.draft import Draft, Step, Wire

ORDER = (0, 2, 1, 3)

PAIRS = (
    ("stride_w", "stride_h"),
    ("dilation_w_factor", "dilation_h_factor"),
    ("filter_width", "filter_height"),
)

ALIKE = frozenset(
    {
        "ADD", "SUB", "MUL", "MINIMUM", "MAXIMUM", "RELU", "RELU6", "RELU_N1_TO_1", "LOGISTIC",
        "TANH", "QUANTIZE", "LEAKY_RELU", "HARD_SWISH",
    }
)  # fmt: skip
"""Operators that compute each position by itself."""

WINDOWS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D"})
POOLS = frozenset({"AVERAGE_POOL_2D", "MAX_POOL_2D"})
FLAT = frozenset({"FULLY_CONNECTED", "SOFTMAX", "RESHAPE"})
"""Operators that may stand where maps have been flattened."""


def swap(draft: Draft) -> bool:
    """Swap H and W; False where that cannot be, and nothing is changed."""
    start = _start(draft)
    if start is None:
        return False
    begun = draft.steps.index(start)
    changes: list[Callable[[], None]] = []
    maps: dict[Wire, None] = {}
    for step in draft.steps[begun:]:
        change = _change(draft, step, maps)
        if change is None:
            return False
        changes.append(change)
    if any(wire in draft.outputs and wire.shape[1:3] != (1, 1) for wire in maps):
        return False
    data = start.data
    for change in changes:
        change()
    for wire in maps:
        wire.shape = _swapped(wire.shape)
    turned = draft.like(data, "swapped", _swapped(data.shape))
    draft.before(start, draft.transposed(start.source, data, turned, ORDER))
    start.inputs[0] = turned
    return True


def _start(draft: Draft) -> Step | None:
    """Return the first operator on maps, if everything follows from it."""
    if len(draft.inputs) != 1:
        return None
    step = draft.only_user(draft.inputs[0])
    while step is not None and step.kind == "RESHAPE":
        step = draft.only_user(step.result)
    if step is None or len(step.data.shape) != 4 or not _moves(step.data):
        return None
    return step if step.kind in WINDOWS | POOLS else None


def _moves(wire: Wire) -> bool:
    """Whether swapping makes a difference to how a map lies."""
    return len(wire.shape) == 4 and min(wire.shape[1:3]) > 1


def _swapped(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(shape[axis] for axis in ORDER)


def _change(draft: Draft, step: Step, maps: dict[Wire, None]) -> Callable[[], None] | None:
    """Return an action that swaps an operator; None if that cannot be. Adds the maps it gives."""
    if len(step.result.shape) != 4 and not any(_is_map(wire) for wire in step.inputs):
        return _nothing if step.kind in FLAT else None
    if step.kind == "RESHAPE":
        return _flattening(draft, step)
    if step.kind == "FULLY_CONNECTED":
        return _turn_flat(draft, step, step.data.shape)
    constants = [wire for wire in step.inputs[1:] if wire is not None and wire.values is not None]
    if step.kind in WINDOWS | POOLS:
        maps[step.result] = None
        return lambda: _turn_window(draft, step)
    if step.kind in ALIKE and all(
        wire.values is not None and wire.values.size == 1 for wire in constants
    ):
        maps[step.result] = None
        return _nothing
    return None


def _is_map(wire: Wire | None) -> bool:
    return wire is not None and wire.values is None and len(wire.shape) == 4


def _nothing() -> None:
    return None


def _turn_window(draft: Draft, step: Step) -> None:
    for wide, high in PAIRS:
        if wide in step.fields:
            step.fields[wide], step.fields[high] = step.fields[high], step.fields[wide]
    weights = step.inputs[1] if step.kind in WINDOWS else None
    if weights is not None and weights.values is not None:
        turned = np.ascontiguousarray(weights.values.transpose(ORDER))
        step.inputs[1] = draft.constant(weights, turned)


def _flattening(draft: Draft, step: Step) -> Callable[[], None] | None:
    """Return the action that gives a flattened map its old order, in the weights after it."""
    if not _moves(step.data):
        return _nothing
    user = draft.only_user(step.result)
    if user is None or user.kind != "FULLY_CONNECTED" or user.data is not step.result:
        return None
    return _turn_flat(draft, user, step.data.shape)


def _turn_flat(draft: Draft, step: Step, shape: tuple[int, ...]) -> Callable[[], None] | None:
    weights = step.inputs[1]
    if weights is None or weights.values is None or weights.shape[1] != np.prod(shape):
        return None
    if len(step.result.shape) == len(shape):
        return None  # it keeps the axes
    order = np.arange(weights.shape[1]).reshape(shape).transpose(ORDER).ravel()
    turned = np.ascontiguousarray(weights.values[:, order])

    def change() -> None:
        step.inputs[1] = draft.constant(weights, turned)

    return change
