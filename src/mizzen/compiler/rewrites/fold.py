"""Fold columns into channels: several neighbouring columns become one with all their channels.

In memory nothing moves: a map [1, H, W, C] lies as [1, H, W/f, f*C] does. A convolution on the one
is one on the other, of weights with zeros where a window does not reach. Few channels, which leave
most of the MAC array idle and most of a brick of 16 empty, become more.

Conditions: int8, one inference, no dilation; W and the result's columns divide by their folds;
what SAME pads before the first column must come out as whole folded columns (zero weights at either
end of the window see to that). Sums have the same terms, and zeros besides: exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mizzen.compiler.rewrites.draft import Array, Draft, Step, Wire
from mizzen.compiler.rewrites.windows import (
    Convolution,
    convolution_of,
    left_of,
    set_convolution,
)

MOST_CHANNELS = 1024
"""Of a folded map: what is folded further only multiplies zeros."""

MOST_ZEROS = 3
"""Zero columns at either end of a window that are tried."""


@dataclass(frozen=True, slots=True)
class Fold:
    """What to fold: columns of the first convolution's input and of all results, how many on."""

    given: int
    made: int
    count: int = 1


def first_convolution(draft: Draft) -> Step | None:
    """Return the convolution that takes the network's only input, in its form or a view of it."""
    if len(draft.inputs) != 1:
        return None
    step = draft.only_user(draft.inputs[0])
    if step is not None and step.kind == "RESHAPE":
        step = draft.only_user(step.result)
    return step if step is not None and convolution_of(step) is not None else None


def fold(draft: Draft, wanted: Fold) -> bool:
    """Fold the first operators; False where that cannot be, and nothing is changed."""
    first = first_convolution(draft)
    if first is None:
        return False
    begun = draft.steps.index(first)
    steps = draft.steps[begun : begun + wanted.count]
    folded = {first.data: wanted.given}
    plans: list[_Plan] = []
    for step in steps:
        if step.kind == "ADD":
            if not _adds(step, folded):
                return False
        else:
            found = convolution_of(step)
            given = folded.get(step.data)
            plan = None if found is None or given is None else _planned(found, given, wanted.made)
            if plan is None:
                return False
            plans.append(plan)
        folded[step.result] = wanted.made
    if len(steps) < wanted.count or (wanted.made == 1 and wanted.count > 1):
        return False
    _apply(draft, plans, steps, wanted)
    return True


def _adds(step: Step, folded: Mapping[Wire, int]) -> bool:
    """Whether an operator adds two maps of one shape that are folded alike."""
    one, other = step.inputs[:2]
    if one is None or other is None or one.shape != other.shape:
        return False
    return one in folded and other in folded and folded[one] == folded[other]


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """A folded convolution: weights [f*O, kh, kw, f*I], and its stride in folded columns."""

    found: Convolution
    weights: Array
    stride: int
    made: int


def _planned(found: Convolution, given: int, made: int) -> _Plan | None:
    step = found.step
    columns, results = step.data.shape[2], step.result.shape[2]
    if columns % given or results % made or found.stride_w * made % given:
        return None
    if max(given * step.data.channels, made * step.result.channels) > MOST_CHANNELS:
        return None
    stride = found.stride_w * made // given
    weights, left = _folded(found, given, made, columns // given)
    fitted = _fitted(weights, left, found.same, columns // given, results // made, stride)
    return None if fitted is None else _Plan(found, fitted, stride, made)


def _folded(found: Convolution, given: int, made: int, columns: int) -> tuple[Array, int]:
    """Return folded weights, and how many folded columns the window begins before the map."""
    outputs, height, width, inputs = found.weights.shape
    taps = [
        (place, tap, found.stride_w * place - found.left + tap)
        for place in range(made)
        for tap in range(width)
    ]
    low = min(0, *(at // given for _, _, at in taps))
    high = max(at // given for _, _, at in taps)
    shape = (made, outputs, height, high - low + 1, given, inputs)
    weights = np.zeros(shape, found.weights.dtype)
    for place, tap, at in taps:
        weights[place, :, :, at // given - low, at % given] = found.weights[:, :, tap]
    if columns == 1:  # one position only: what lies outside the map are zeros
        weights, low = weights[:, :, :, -low : 1 - low], 0
    return weights.reshape(made * outputs, height, -1, given * inputs), -low


def _fitted(
    weights: Array, left: int, same: bool, columns: int, results: int, stride: int
) -> Array | None:
    """Add zero columns so that TFLite pads as many before the map as the window begins before it.

    None if no few of them do.
    """
    for before in range(MOST_ZEROS + 1):
        for after in range(MOST_ZEROS + 1):
            window = weights.shape[2] + before + after
            if same:
                fits = results == -(-columns // stride)
            else:
                fits = window <= columns and results == (columns - window) // stride + 1
            if fits and left_of(same, columns, results, window, stride) == left + before:
                ends = ((0, 0), (0, 0), (before, after), (0, 0))
                return np.pad(weights, ends)
    return None


def _apply(draft: Draft, plans: list[_Plan], steps: list[Step], wanted: Fold) -> None:
    _view_before(draft, steps[0], wanted.given)
    for plan in plans:
        made, scales, bias = plan.made, plan.found.scales, plan.found.bias
        if scales.size > 1:
            scales = np.tile(scales, made)
        set_convolution(
            draft,
            plan.found,
            plan.weights,
            scales=scales,
            bias=None if bias is None else np.tile(bias, made),
            stride_w=plan.stride,
        )
    if wanted.made > 1:
        for step in steps:
            _view_after(draft, step, steps, wanted.made)


def _shape(wire: Wire, columns: int) -> tuple[int, int, int, int]:
    batch, height, width, channels = wire.shape
    return batch, height, width // columns, columns * channels


def _view_before(draft: Draft, step: Step, columns: int) -> None:
    """Let an operator take its input with columns as channels."""
    if columns == 1:
        return
    view = draft.like(step.data, "folded", _shape(step.data, columns))
    draft.before(step, draft.view(step.source, step.data, view))
    step.inputs[0] = view


def _view_after(draft: Draft, step: Step, inside: list[Step], columns: int) -> None:
    """Fold an operator's result, and give what is not folded itself channels as columns again."""
    whole = step.result
    shape = _shape(whole, columns)
    outside = [user for user in draft.users(whole) if user not in inside]
    if not outside and whole not in draft.outputs:
        whole.shape = shape
        return
    folded = draft.like(whole, "folded", shape)
    step.outputs[0] = folded
    for user in inside:
        user.inputs = [folded if wire is whole else wire for wire in user.inputs]
    draft.after(step, draft.view(step.source, folded, whole))
