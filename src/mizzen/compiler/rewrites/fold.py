"""Fold columns into channels: several neighbouring columns become one with all their channels.

In memory nothing moves: a map [1, H, W, C] lies as [1, H, W/f, f*C] does. A convolution on the one
is one on the other, of weights with zeros where a window does not reach. Few channels, which leave
most of the MAC array idle and most of a brick of 16 empty, become more.

Conditions: int8, one inference, no dilation; W and the result's columns divide by their folds;
what SAME pads before the first column must come out as whole folded columns (zero weights at either
end of the window see to that, or a PAD before it that pads other columns). Additions between
them are of maps that are folded alike. Sums have the same terms, and zeros besides: exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mizzen.compiler.rewrites.draft import Array, Draft, Step, Wire
from mizzen.compiler.rewrites.pads import is_window_pad, pad_amounts
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


def first_window(draft: Draft) -> Step | None:
    """Return the convolution that takes the network's only input, or the PAD before it.

    It may take the input in another shape, and swapped.
    """
    if len(draft.inputs) != 1:
        return None
    step = draft.only_user(draft.inputs[0])
    while step is not None and step.kind in ("RESHAPE", "TRANSPOSE"):
        step = draft.only_user(step.result)
    return step


def padded_convolution(draft: Draft, step: Step) -> tuple[Step | None, Convolution | None]:
    """Return the PAD that an operator is, if it is one, and the convolution that it is or feeds."""
    if not is_window_pad(step):
        return None, convolution_of(step)
    user = draft.only_user(step.result)
    convolution = None if user is None or user.data is not step.result else convolution_of(user)
    return step, convolution if convolution is not None and not convolution.same else None


def fold(draft: Draft, wanted: Fold) -> bool:
    """Fold the first operators; False where that cannot be, and nothing is changed."""
    step = first_window(draft)
    if step is None or (wanted.made == 1 and wanted.count > 1):
        return False
    place = draft.steps.index(step)
    folded = {step.data: wanted.given}
    plans: list[_Plan] = []
    inside: list[Step] = []
    while len(inside) < wanted.count:
        if place == len(draft.steps):
            return False
        step = draft.steps[place]
        if step.kind == "ADD":
            if not _adds(step, folded):
                return False
        else:
            pad, convolution = padded_convolution(draft, step)
            given = folded.get(step.data)
            plan = (
                None
                if convolution is None or given is None
                else _planned(convolution, pad, given, wanted)
            )
            if plan is None:
                return False
            plans.append(plan)
            step = plan.convolution.step
        inside.append(step)
        folded[step.result] = wanted.made
        place = draft.steps.index(step) + 1
    _apply(draft, plans, inside, wanted)
    return True


def _adds(step: Step, folded: Mapping[Wire, int]) -> bool:
    """Whether an operator adds two maps of one shape that are folded alike."""
    one, other = step.inputs[:2]
    if one is None or other is None or one.shape != other.shape:
        return False
    return one in folded and other in folded and folded[one] == folded[other]


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """A folded convolution: weights [f*O, kh, kw, f*I], and its stride in folded columns.

    pad    before it, and the folded columns that it then pads before and after
    given  columns of its input that are folded
    """

    convolution: Convolution
    weights: Array
    stride: int
    given: int
    pad: Step | None = None
    columns: tuple[int, int] = (0, 0)


def _planned(convolution: Convolution, pad: Step | None, given: int, wanted: Fold) -> _Plan | None:
    step, made = convolution.step, wanted.made
    data = step.data if pad is None else pad.data
    columns, results = data.shape[2], step.result.shape[2]
    if columns % given or results % made or convolution.stride_w * made % given:
        return None
    if max(given * data.channels, made * step.result.channels) > MOST_CHANNELS:
        return None
    stride = convolution.stride_w * made // given
    columns, results = columns // given, results // made
    if pad is not None:
        left = int(pad_amounts(pad)[2, 0])
        weights, before = _folded(convolution, left, given, made, 0)
        behind = (results - 1) * stride + weights.shape[2] - columns - before
        fits = behind >= 0 and (pad_amounts(pad)[1:3] >= 0).all()
        return _Plan(convolution, weights, stride, given, pad, (before, behind)) if fits else None
    weights, before = _folded(convolution, convolution.left, given, made, columns)
    fitted = _fitted(weights, before, convolution.same, columns, results, stride)
    return None if fitted is None else _Plan(convolution, fitted, stride, given)


def _folded(
    convolution: Convolution, left: int, given: int, made: int, columns: int
) -> tuple[Array, int]:
    """Return folded weights, and how many folded columns the window begins before the map.

    left     columns that are padded before the map
    columns  folded, of the map; what lies outside of a single one is left out
    """
    outputs, height, width, inputs = convolution.weights.shape
    taps = [
        (place, tap, convolution.stride_w * place - left + tap)
        for place in range(made)
        for tap in range(width)
    ]
    low = min(0, *(at // given for _, _, at in taps))
    high = max(at // given for _, _, at in taps)
    shape = (made, outputs, height, high - low + 1, given, inputs)
    weights = np.zeros(shape, convolution.weights.dtype)
    for place, tap, at in taps:
        weights[place, :, :, at // given - low, at % given] = convolution.weights[:, :, tap]
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


def _apply(draft: Draft, plans: list[_Plan], inside: list[Step], wanted: Fold) -> None:
    first = plans[0]
    _view_before(draft, first.convolution.step if first.pad is None else first.pad, wanted.given)
    for plan in plans:
        made, scales, bias = wanted.made, plan.convolution.scales, plan.convolution.bias
        if scales.size > 1:
            scales = np.tile(scales, made)
        set_convolution(
            draft,
            plan.convolution,
            plan.weights,
            scales=scales,
            bias=None if bias is None else np.tile(bias, made),
            stride_w=plan.stride,
        )
    if wanted.made > 1:
        for step in inside:
            _view_after(draft, step, inside, [each.pad for each in plans], wanted.made)
    for plan in plans:
        if plan.pad is not None:
            _pad(draft, plan.pad, plan.columns)


def _pad(draft: Draft, pad: Step, columns: tuple[int, int]) -> None:
    """Let a PAD pad folded columns."""
    amounts, old = pad_amounts(pad).copy(), pad.inputs[1]
    assert old is not None, "a PAD has amounts"
    amounts[2] = columns
    pad.inputs[1] = draft.constant(old, amounts)
    pad.result.shape = (
        *(
            extent + before + behind
            for extent, (before, behind) in zip(pad.data.shape, amounts.tolist(), strict=True)
        ),
    )


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


def _view_after(
    draft: Draft, step: Step, inside: list[Step], pads: Sequence[Step | None], columns: int
) -> None:
    """Fold an operator's result, and give what is not folded itself channels as columns again."""
    whole = step.result
    shape = _shape(whole, columns)
    inside = [*inside, *(pad for pad in pads if pad is not None)]
    outside = [user for user in draft.users(whole) if user not in inside]
    if not outside and whole not in draft.outputs:
        whole.shape = shape
        return
    folded = draft.like(whole, "folded", shape)
    step.outputs[0] = folded
    for user in inside:
        user.inputs = [folded if wire is whole else wire for wire in user.inputs]
    draft.after(step, draft.view(step.source, folded, whole))
